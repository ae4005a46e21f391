package floodgatetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// Request is a [core.Request] for key functions and hooks. Its methods return the same as those of
// the net/http adapter's request would. [NewRequest] makes it. It must not be used concurrently.
type Request struct {
	adapterRequest // the net/http adapter's, of http

	http   *http.Request
	body   string
	values map[any]any
}

// adapterRequest is a name that keeps the field of Request unexported.
type adapterRequest = core.Request

var _ core.Request = (*Request)(nil)

// RequestOption is an option of [NewRequest]: [From], [Header], [Cookie], [Route], [PathValue],
// [Value], [Context], [Form], [JSON] or [Body].
type RequestOption func(*Request)

// NewRequest returns a request. target is a path with or without a query, or an absolute URL. By
// default, the peer's address is 192.0.2.1:1234, the header has only the line Host, and the body is
// empty. NewRequest panics if method or target is malformed, as httptest.NewRequest does.
func NewRequest(method, target string, opts ...RequestOption) *Request {
	h := httptest.NewRequest(method, target, http.NoBody)
	r := &Request{adapterRequest: httprequest.Request{HTTP: h}, http: h, values: map[any]any{}}
	for _, option := range opts {
		option(r)
	}
	return r
}

// From sets the address of the connection's peer, such as "192.0.2.7:5000". The default is
// "192.0.2.1:1234".
func From(address string) RequestOption {
	return func(r *Request) { r.http.RemoteAddr = address }
}

// Header adds a line to the header. A second line with the same name does not replace the first.
// The Host is that of the target: Header does not change it.
func Header(name, value string) RequestOption {
	return func(r *Request) { r.http.Header.Add(name, value) }
}

// Cookie adds a cookie to the header.
func Cookie(name, value string) RequestOption {
	return func(r *Request) { r.http.AddCookie(&http.Cookie{Name: name, Value: value}) }
}

// Route sets the pattern of the matched route, such as "/items/{id}". The default is "": no route
// has been matched.
func Route(pattern string) RequestOption { return func(r *Request) { r.http.Pattern = pattern } }

// PathValue sets the value of a parameter of the matched route, such as id in "/items/{id}".
func PathValue(name, value string) RequestOption {
	return func(r *Request) { r.http.SetPathValue(name, value) }
}

// Value sets the value that a middleware has stored for the request under key.
func Value(key, value any) RequestOption { return func(r *Request) { r.values[key] = value } }

// Context sets the request's context. The default is context.Background().
func Context(ctx context.Context) RequestOption {
	return func(r *Request) { *r.http = *r.http.WithContext(ctx) }
}

// Form adds a field to a body of the type application/x-www-form-urlencoded.
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

// Body sets the body and its Content-Type.
func Body(contentType, text string) RequestOption {
	return func(r *Request) {
		r.body = text
		r.http.Header.Set("Content-Type", contentType)
	}
}

// Value implements [core.Request].
func (r *Request) Value(key any) any {
	if v, found := r.values[key]; found {
		return v
	}
	return r.adapterRequest.Value(key)
}

// Body implements [core.Request].
func (r *Request) Body(most int) ([]byte, error) {
	return []byte(r.body[:max(0, min(len(r.body), most))]), nil
}
