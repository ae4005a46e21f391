package echolimit

import (
	"context"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// request is the core.Request of an Echo context. An echo.Context is an interface, not one pointer,
// so that its conversion to a core.Request would allocate. Requests are therefore reused.
type request struct{ c echo.Context }

var _ core.Request = (*request)(nil)

var requests = sync.Pool{New: func() any { return new(request) }}

// free gives a request back. That of a denial is not given back, because a hook may keep it for its
// log. Nor is that of a settled request.
func (r *request) free() {
	r.c = nil
	requests.Put(r)
}

func (r *request) http() httprequest.Request { return httprequest.Request{HTTP: r.c.Request()} }

func (r *request) Context() context.Context          { return r.http().Context() }
func (r *request) Method() string                    { return r.http().Method() }
func (r *request) Path() string                      { return r.http().Path() }
func (r *request) EscapedPath() string               { return r.http().EscapedPath() }
func (r *request) RemoteAddr() string                { return r.http().RemoteAddr() }
func (r *request) HeaderValues(name string) []string { return r.http().HeaderValues(name) }
func (r *request) Cookie(name string) (string, bool) { return r.http().Cookie(name) }
func (r *request) Query(name string) (string, bool)  { return r.http().Query(name) }
func (r *request) RawQuery() string                  { return r.http().RawQuery() }
func (r *request) Body(n int) ([]byte, error)        { return r.http().Body(n) }

// Route returns the pattern of the matched route.
func (r *request) Route() string { return r.c.Path() }

// PathValue returns the value of a parameter of the matched route.
func (r *request) PathValue(name string) string { return r.c.Param(name) }

// Value returns the value that is stored in Echo's context, or else in the request's context.
func (r *request) Value(key any) any {
	if key == any(contextKey{}) {
		return r.c
	}
	if name, ok := key.(string); ok {
		if v := r.c.Get(name); v != nil {
			return v
		}
	}
	return r.http().Value(key)
}

// Context returns the echo.Context that r stands for, for key functions and hooks. It returns false
// if r is a request of another framework. The caller must not keep the result, and reads the body
// with [core.Request].Body, so that the handler can read it too.
func Context(r core.Request) (echo.Context, bool) {
	c, ok := r.Value(contextKey{}).(echo.Context)
	return c, ok
}

type contextKey struct{}
