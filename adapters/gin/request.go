package ginlimit

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/httprequest"
)

// request is the core.Request of a Gin context. It is one pointer, so that its conversion to an
// interface does not allocate.
type request struct{ c *gin.Context }

var _ core.Request = request{}

func (r request) http() httprequest.Request { return httprequest.Request{HTTP: r.c.Request} }

func (r request) Context() context.Context          { return r.http().Context() }
func (r request) Method() string                    { return r.http().Method() }
func (r request) Path() string                      { return r.http().Path() }
func (r request) EscapedPath() string               { return r.http().EscapedPath() }
func (r request) RemoteAddr() string                { return r.http().RemoteAddr() }
func (r request) HeaderValues(name string) []string { return r.http().HeaderValues(name) }
func (r request) Cookie(name string) (string, bool) { return r.http().Cookie(name) }
func (r request) Query(name string) (string, bool)  { return r.http().Query(name) }
func (r request) RawQuery() string                  { return r.http().RawQuery() }
func (r request) Body(n int) ([]byte, error)        { return r.http().Body(n) }

// Route returns the pattern of the matched route.
func (r request) Route() string { return r.c.FullPath() }

// PathValue returns the value of a parameter of the matched route.
func (r request) PathValue(name string) string { return r.c.Param(name) }

// Value returns the value that is stored in Gin's context, or else in the request's context.
func (r request) Value(key any) any {
	if key == any(contextKey{}) {
		return r.c
	}
	if name, ok := key.(string); ok {
		if v, found := r.c.Get(name); found {
			return v
		}
	}
	return r.http().Value(key)
}

// Context returns the *gin.Context that r stands for, for key functions and hooks. It returns false
// if r is a request of another framework. The caller must not keep the result, and reads the body
// with [core.Request].Body, so that the handler can read it too.
func Context(r core.Request) (*gin.Context, bool) {
	c, ok := r.Value(contextKey{}).(*gin.Context)
	return c, ok
}

type contextKey struct{}
