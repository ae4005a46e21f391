package login

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// result is the meaning of an outcome for an attempt. Its value is the status that the rules'
// functions Counts and Clears get.
type result int

const (
	neither result = 500 // the attempt is refunded
	success result = 200
	failure result = 401
)

// judge returns the result of an attempt. A canceled attempt is a failure: otherwise an
// attacker could guess for free by closing the connection.
func (c *Config) judge(a *attempt, o core.Outcome) result {
	switch {
	case o.Panicked || o.Canceled:
		return failure
	case o.Status >= 500 || o.Status == 101:
		return neither
	case c.fails(a, o):
		return failure
	case c.logsIn(a) && c.Success(o):
		return success
	}
	return neither // for example, the page of the login form
}

// fails is Config.Failure or its default.
func (c *Config) fails(a *attempt, o core.Outcome) bool {
	switch {
	case c.Failure != nil:
		return c.Failure(o)
	case a.basic:
		return o.Status == http.StatusUnauthorized || o.Status == http.StatusProxyAuthRequired
	}
	return !c.Success(o)
}

func succeeded(_ core.Request, o core.Outcome) bool { return o.Status == int(success) }
func failed(_ core.Request, o core.Outcome) bool    { return o.Status == int(failure) }

// RedirectFails returns a Config.Success for handlers that answer a wrong password with a
// redirect. A redirect is a failure if its path is one of the paths, such as "/login". The
// host, the query and slashes at the ends of the path do not matter. A relative redirect,
// such as "login?error=1" or "?error=1", is resolved against each of the paths. A redirect
// that is not a valid URL is a failure too. Every other response is a success if its status
// is below 400. The returned function may be called concurrently.
func RedirectFails(paths ...string) func(o core.Outcome) bool {
	return func(o core.Outcome) bool {
		if o.Status < 300 || o.Status >= 400 || o.Header == nil || o.Header("Location") == "" {
			return o.Status < 400
		}
		to, err := url.Parse(strings.TrimSpace(o.Header("Location")))
		return err == nil && !slices.ContainsFunc(paths, func(path string) bool {
			led := (&url.URL{Path: path}).ResolveReference(to).Path
			return strings.Trim(led, "/") == strings.Trim(path, "/")
		})
	}
}
