package login

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/usernames"
)

// Normalize maps all spellings of a username to one canonical form. Two usernames have the same
// form if they differ only in compatibility forms and composed characters (Unicode NFKC), in letter
// case (Unicode's simple case folding, strings.ToUpper and strings.ToLower; a dotless i is an i),
// or in Unicode white space at the ends. Normalize removes nothing else. It returns text that is
// not valid UTF-8 unchanged. A guard denies requests with invisible characters in a name before it
// calls Normalize: see Config.Normalize. It may be called concurrently.
func Normalize(username string) string {
	if !utf8.ValidString(username) {
		return username
	}
	folded, _ := usernames.Fold(norm.NFKC.String(username)) // it rejects only invalid UTF-8, checked above
	// Fold may return text that is not in NFKC, and with capital letters.
	return strings.TrimSpace(norm.NFKC.String(strings.ToLower(folded)))
}

// BasicUser returns a key function for Config.Sources. The key is the user of HTTP Basic
// authentication (RFC 7617); it is empty if the request has no such header. The error is a
// [core.BadRequestError] if the header Authorization is given twice or cannot be read, because a
// handler could find a name in it. The key function may be called concurrently.
//
// A client sends Basic authentication with every request. Config.Methods must
// therefore name all methods of the protected routes, such as GET, and
// Config.Attempts must allow as many requests. A request without the header is denied
// with 400 if Config.Methods names its method: answer it with 401 before the guard.
//
// If no other source has found the username, only 401 and 407 are failures (see Config.Failure).
// Of one address and account, as many requests as the quota of Config.Failures, or its burst, run at
// a time; others wait, up to 10 seconds. While failures count, concurrent requests may be denied
// although their password is right, until one has succeeded.
func BasicUser() core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		lines := r.HeaderValues("Authorization")
		if len(lines) > 1 {
			return dst, errBasicTwice
		}
		if len(lines) == 0 || len(lines[0]) < len(basic) || !strings.EqualFold(lines[0][:len(basic)], basic) {
			return dst, nil
		}
		user, _, ok := (&http.Request{Header: http.Header{"Authorization": lines}}).BasicAuth()
		if !ok { // another framework may read it: Echo takes any character for the space
			return dst, errBasic
		}
		if a, ok := r.Value(attemptKey{}).(*attempt); ok {
			a.inBasic = true
		}
		return append(dst, user...), nil
	}
}

const basic = "basic" // the scheme, in any letter case

var (
	errNoUsername   = &core.BadRequestError{Detail: "the username is missing, or cannot be read"}
	errTwoUsernames = &core.BadRequestError{Detail: "the request names two different usernames"}
	errBasic        = &core.BadRequestError{Detail: "the header Authorization cannot be read"}
	errBasicTwice   = &core.BadRequestError{Detail: "the header Authorization is given twice"}
)

// account returns the normalised username of an attempt, and whether only BasicUser has
// found it. All sources that find a username must find the same one.
func (c *Config) account(a *attempt, r core.Request) (account string, basic bool, err error) {
	found := false
	for _, source := range c.Sources {
		a.inBasic = false
		raw, err := source(nil, r)
		switch {
		case errors.Is(err, core.SkipRule), err == nil && len(raw) == 0:
			continue
		case err != nil:
			return "", false, err
		}
		plain, err := usernames.Plain(string(raw))
		if err != nil {
			return "", false, err
		}
		name := c.Normalize(plain)
		if found && name != account {
			return "", false, errTwoUsernames
		}
		basic = a.inBasic && (basic || !found)
		account, found = name, true
	}
	if account == "" {
		if c.Field != "" {
			return "", false, &core.BadRequestError{Detail: fmt.Sprintf("the field %q is missing or empty", c.Field)}
		}
		return "", false, errNoUsername
	}
	return account, basic, nil
}

// names reports whether a source finds a username in a request, or returns an error
// that wraps core.ErrBadRequest.
func (c *Config) names(r core.Request) bool {
	return slices.ContainsFunc(c.Sources, func(source core.KeyFunc) bool {
		name, err := source(nil, r)
		return len(name) > 0 && err == nil || errors.Is(err, core.ErrBadRequest)
	})
}
