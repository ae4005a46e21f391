package floodgatetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/floodgate-go/floodgate/core"
)

// Request is a [core.Request] for key functions and hooks, as an adapter would
// make it of a request to a net/http server. It is used by one goroutine at a
// time.
type Request struct {
	http   *http.Request
	route  string
	body   string
	values map[any]any
}

var _ core.Request = (*Request)(nil)

// RequestOption is a part of a request that [NewRequest] makes.
type RequestOption func(*Request)

// NewRequest returns a request from 192.0.2.1:1234. target is a path with or
// without a query, or an absolute URL. As httptest.NewRequest does, it panics if
// the method or the target is malformed.
func NewRequest(method, target string, opts ...RequestOption) *Request {
	r := &Request{http: httptest.NewRequest(method, target, http.NoBody), values: map[any]any{}}
	for _, option := range opts {
		option(r)
	}
	return r
}

// From sets the address of the peer of the connection, such as "192.0.2.7:5000".
func From(address string) RequestOption {
	return func(r *Request) { r.http.RemoteAddr = address }
}

// Header adds a line to the header.
func Header(name, value string) RequestOption {
	return func(r *Request) { r.http.Header.Add(name, value) }
}

// Cookie adds a cookie.
func Cookie(name, value string) RequestOption {
	return func(r *Request) { r.http.AddCookie(&http.Cookie{Name: name, Value: value}) }
}

// Route sets the pattern of the route that the router has matched, such as
// "/items/{id}".
func Route(pattern string) RequestOption { return func(r *Request) { r.route = pattern } }

// Value sets what a middleware has stored for the request under key.
func Value(key, value any) RequestOption { return func(r *Request) { r.values[key] = value } }

// Context sets the request's context.
func Context(ctx context.Context) RequestOption {
	return func(r *Request) { r.http = r.http.WithContext(ctx) }
}

// Form adds a field to an URL-encoded body.
func Form(name, value string) RequestOption {
	return func(r *Request) {
		field := url.QueryEscape(name) + "=" + url.QueryEscape(value)
		if r.body != "" {
			field = r.body + "&" + field
		}
		Body("application/x-www-form-urlencoded", field)(r)
	}
}

// JSON sets a body of the type application/json.
func JSON(text string) RequestOption { return Body("application/json", text) }

// Body sets the body and its type.
func Body(contentType, text string) RequestOption {
	return func(r *Request) {
		r.body = text
		r.http.Header.Set("Content-Type", contentType)
	}
}

// Context implements [core.Request].
func (r *Request) Context() context.Context { return r.http.Context() }

// Method implements [core.Request].
func (r *Request) Method() string { return r.http.Method }

// Path implements [core.Request].
func (r *Request) Path() string { return r.http.URL.Path }

// EscapedPath implements [core.Request].
func (r *Request) EscapedPath() string {
	if r.http.URL.RawPath != "" {
		return r.http.URL.RawPath
	}
	return r.http.URL.EscapedPath()
}

// Route implements [core.Request].
func (r *Request) Route() string { return r.route }

// RemoteAddr implements [core.Request].
func (r *Request) RemoteAddr() string { return r.http.RemoteAddr }

// HeaderValues implements [core.Request].
func (r *Request) HeaderValues(name string) []string {
	if strings.EqualFold(name, "Host") {
		return []string{r.http.Host}
	}
	return r.http.Header.Values(name)
}

// Cookie implements [core.Request].
func (r *Request) Cookie(name string) (string, bool) {
	c, err := r.http.Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// Query implements [core.Request].
func (r *Request) Query(name string) (string, bool) {
	values, found := r.http.URL.Query()[name]
	if !found {
		return "", false
	}
	return values[0], true
}

// RawQuery implements [core.Request].
func (r *Request) RawQuery() string { return r.http.URL.RawQuery }

// Value implements [core.Request].
func (r *Request) Value(key any) any {
	if v, found := r.values[key]; found {
		return v
	}
	return r.http.Context().Value(key)
}

// Body implements [core.Request].
func (r *Request) Body(most int) ([]byte, error) {
	return []byte(r.body[:max(0, min(len(r.body), most))]), nil
}
