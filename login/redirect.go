package login

import (
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// RedirectFails returns a Success for forms that answer with redirects: a
// redirect to one of these locations, such as "/login", is a failure, whatever
// its query and host, and with or without a slash at the end. So is one that
// cannot be read. A relative one, such as "login?error=1" or "?error=1", is taken
// to be written by each of the locations.
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

// plainPath is a URL's path without slashes at its ends.
func plainPath(u *url.URL) string { return strings.Trim(u.Path, "/") }
