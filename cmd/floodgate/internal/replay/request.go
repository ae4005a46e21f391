package replay

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"unicode"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// request is a line of a log as the policies see it.
type request struct {
	entry   accesslog.Entry
	path    string
	rawPath string // with what is escaped
	query   url.Values
	text    string // of the query; query has its values after the first call of Query
	missing map[string]bool
}

// set makes e the request's log entry.
func (r *request) set(e accesslog.Entry) {
	r.entry, r.query = e, nil
	target := e.Target
	if !strings.HasPrefix(target, "/") { // a proxy's request line, or a star
		if u, err := url.Parse(target); err == nil && u.Host != "" {
			target = u.RequestURI()
		}
	}
	r.rawPath, r.text, _ = strings.Cut(target, "?")
	r.path = r.rawPath
	if strings.Contains(r.path, "%") {
		if p, err := url.PathUnescape(r.path); err == nil {
			r.path = p
		}
	}
}

// lacks records a value that the policies read and the log lacks.
func (r *request) lacks(what string) {
	if len(r.missing) < 100 {
		r.missing[what] = true
	}
}

func (r *request) Context() context.Context { return context.Background() }
func (r *request) Method() string           { return r.entry.Method }
func (r *request) Path() string             { return r.path }
func (r *request) EscapedPath() string      { return r.rawPath }
func (r *request) Route() string            { return r.entry.Route }

// PathValue returns "": no log has the parameters of a route.
func (r *request) PathValue(name string) string {
	r.lacks(fmt.Sprintf("the path value %q", name))
	return ""
}

func (r *request) RemoteAddr() string {
	if a, err := netip.ParseAddr(r.entry.Addr); err == nil {
		return net.JoinHostPort(a.String(), "0")
	}
	if _, err := netip.ParseAddrPort(r.entry.Addr); err != nil {
		r.lacks("the client's address")
	}
	return r.entry.Addr
}

// client names the client for the report.
func (r *request) client() string {
	if host, _, err := net.SplitHostPort(r.entry.Addr); err == nil {
		return host
	}
	return r.entry.Addr
}

func (r *request) HeaderValues(name string) []string {
	value, known := r.entry.Header(name)
	if !known && !strings.EqualFold(name, "Access-Control-Request-Method") {
		r.lacks("header " + name)
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

func (r *request) Cookie(name string) (string, bool) {
	r.lacks("cookie " + name)
	return "", false
}

func (r *request) Query(name string) (string, bool) {
	if r.query == nil {
		r.query, _ = url.ParseQuery(r.text) // what can be read of it
	}
	return r.query.Get(name), r.query.Has(name)
}

func (r *request) RawQuery() string { return r.text }

func (r *request) Value(any) any { return nil }

func (r *request) Body(int) ([]byte, error) {
	r.lacks("body")
	return nil, nil
}

// routeOf returns the route of a path: parts that look like identifiers become {id}.
func routeOf(method, path string) string {
	var b strings.Builder
	b.WriteString(method)
	b.WriteByte(' ')
	for i, segment := range strings.Split(path, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		if identifier(segment) {
			segment = "{id}"
		}
		b.WriteString(segment)
	}
	if b.Len() > 200 {
		return strings.ToValidUTF8(b.String()[:200], "") + "..."
	}
	return b.String()
}

// identifier reports whether a part of a path looks like an identifier: a number, or a long text
// with digits, such as a UUID or a hash.
func identifier(s string) bool {
	digits := 0
	for _, c := range s {
		switch {
		case unicode.IsDigit(c):
			digits++
		case c == '-' || c == '_':
		case !unicode.IsLetter(c):
			return false
		}
	}
	return digits > 0 && (digits == len(s) || len(s) >= 16 && digits >= 3)
}
