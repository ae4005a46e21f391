// Package httprequest makes a core.Request of an *http.Request, for the adapters of net/http,
// Gin and Echo and for httpclient.
package httprequest

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Request is the core.Request of an *http.Request. It is one pointer, so that its
// conversion to an interface does not allocate.
type Request struct{ HTTP *http.Request }

var _ core.Request = Request{}

// Context implements core.Request.
func (r Request) Context() context.Context { return r.HTTP.Context() }

// Method implements core.Request.
func (r Request) Method() string {
	if r.HTTP.Method == "" { // net/http allows that in a client's request: it means GET
		return http.MethodGet
	}
	return r.HTTP.Method
}

// Path implements core.Request.
func (r Request) Path() string {
	if r.HTTP.URL == nil {
		return ""
	}
	return r.HTTP.URL.Path
}

// EscapedPath implements core.Request.
func (r Request) EscapedPath() string {
	if r.HTTP.URL == nil {
		return ""
	}
	if r.HTTP.URL.RawPath != "" { // url.URL.EscapedPath would ignore one that does not fit Path, and routers do not
		return r.HTTP.URL.RawPath
	}
	return r.HTTP.URL.EscapedPath()
}

// Route returns the pattern that http.ServeMux has matched.
func (r Request) Route() string { return r.HTTP.Pattern }

// PathValue returns the value of a wildcard of the pattern that http.ServeMux has matched,
// or that another router has stored with SetPathValue.
func (r Request) PathValue(name string) string { return r.HTTP.PathValue(name) }

// RemoteAddr implements core.Request.
func (r Request) RemoteAddr() string { return r.HTTP.RemoteAddr }

// HeaderValues implements core.Request.
func (r Request) HeaderValues(name string) []string {
	if strings.EqualFold(name, "Host") {
		return []string{r.HTTP.Host} // net/http removes Host from the header
	}
	return r.HTTP.Header.Values(name)
}

// Cookie implements core.Request.
func (r Request) Cookie(name string) (string, bool) {
	c, err := r.HTTP.Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// Query implements core.Request.
func (r Request) Query(name string) (string, bool) {
	if r.HTTP.URL == nil || r.HTTP.URL.RawQuery == "" {
		return "", false
	}
	values, _ := url.ParseQuery(r.HTTP.URL.RawQuery) // the parameters that are well formed
	v, found := values[name]
	if !found {
		return "", false
	}
	return v[0], true
}

// RawQuery implements core.Request.
func (r Request) RawQuery() string {
	if r.HTTP.URL == nil {
		return ""
	}
	return r.HTTP.URL.RawQuery
}

// Key is the key under which Value returns the *http.Request.
type Key struct{}

// Value implements core.Request.
func (r Request) Value(key any) any {
	if key == any(Key{}) {
		return r.HTTP
	}
	return r.HTTP.Context().Value(key)
}

// Body implements core.Request. It replaces the body of the http.Request, so that handlers
// still read the whole body. The error wraps core.ErrBodyRead if a middleware has read the
// body, or a part of it, before the first call.
func (r Request) Body(max int) ([]byte, error) {
	if max <= 0 {
		return nil, nil // nothing to read
	}
	kept, ok := r.HTTP.Body.(*keptBody)
	if !ok {
		if parsed(r.HTTP) {
			return nil, core.ErrBodyRead
		}
		if r.HTTP.Body == nil || r.HTTP.Body == http.NoBody {
			return nil, nil
		}
		kept = &keptBody{rest: r.HTTP.Body}
		r.HTTP.Body = kept
	}
	head, err := kept.head(max)
	if kept.missing(r.HTTP) {
		return nil, core.ErrBodyRead
	}
	return head, err
}
