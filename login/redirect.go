package login

import (
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// RedirectFails returns a Config.Success for handlers that answer a wrong password
// with a redirect. A redirect is a failure if its path is the path of one of the
// locations, such as "/login". The host, the query and slashes at the ends of the path
// do not matter. A relative redirect, such as "login?error=1" or "?error=1", is
// resolved against each of the locations. A redirect that is not a valid URL is a
// failure too. Every other response is a success if its status is below 400. The
// returned function may be called concurrently.
func RedirectFails(locations ...string) func(o core.Outcome) bool {
	bases := make([]*url.URL, len(locations))
	for i, l := range locations {
		base, err := url.Parse(l)
		if err != nil {
			base = &url.URL{Path: l}
		}
		bases[i] = base
	}
	return func(o core.Outcome) bool {
		if o.Status < 300 || o.Status >= 400 || o.Header == nil || o.Header("Location") == "" {
			return o.Status < 400
		}
		to, err := url.Parse(strings.TrimSpace(o.Header("Location")))
		if err != nil {
			return false
		}
		for _, base := range bases {
			if plainPath(base.ResolveReference(to)) == plainPath(base) {
				return false
			}
		}
		return true
	}
}

// plainPath returns a URL's path without slashes at both ends.
func plainPath(u *url.URL) string { return strings.Trim(u.Path, "/") }
