package ginlimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Name:      "ginlimit",
		Mount:     func(c core.Checker, n int) { ginlimit.Middleware(c, make([]ginlimit.Option, n)...) },
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := ginlimit.Context(r)
			if !found {
				return "", false
			}
			return c.GetHeader(header), true
		},
		Serve:      func(t *testing.T, app adaptertest.App) string { return adaptertest.Listen(t, build(app)) },
		ServeHTTP2: func(t *testing.T, app adaptertest.App) string { return adaptertest.ListenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			r := gin.New()
			r.GET("/", ginlimit.PerIP(quota, window, opts...), func(*gin.Context) {})
			return adaptertest.Listen(t, r)
		},
		Flushes:     true,
		SendsAtOnce: true,
		Hijacks:     true,
		Panics:      true,

		SeesCancel:     true,
		TimeoutOutside: true,
	})
}

func init() { gin.SetMode(gin.TestMode) }

// build makes a Gin application.
func build(app adaptertest.App) http.Handler {
	r := gin.New()
	outside, around := adaptertest.Timeouts(app.Outside)
	r.Use(surround(outside)...)
	if app.User != "" {
		r.Use(func(c *gin.Context) { c.Set(adaptertest.UserKey, app.User) })
	}
	limits := append(middleware(app.Limits), surround(app.Inside)...)
	if app.AnswersErrors {
		limits = append(limits, answerErrors)
	}
	routes := gin.IRoutes(r)
	if app.Group != "" {
		routes = r.Group(app.Group)
	}
	routes.Use(limits...)
	for _, route := range app.Routes {
		routes.Handle(route.Method, route.Pattern, append(middleware(route.Limits), handler(route.Handler, app.AnswersErrors))...)
	}
	return around(r)
}

func surround(ms []adaptertest.Middleware) (hs []gin.HandlerFunc) {
	for _, m := range ms {
		if before := adaptertest.Before(m); before != nil {
			hs = append(hs, func(c *gin.Context) { c.Request = before(c.Writer, c.Request) })
			continue
		}
		hs = append(hs, map[adaptertest.Middleware]gin.HandlerFunc{
			adaptertest.Recovery: gin.RecoveryWithWriter(io.Discard),
			adaptertest.CORS:     cors,
			adaptertest.Logging:  gin.LoggerWithWriter(io.Discard),

			adaptertest.Deadline:        deadline(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: deadline(adaptertest.PatientAfter),
		}[m])
	}
	return hs
}

func cors(c *gin.Context) {
	if c.GetHeader("Origin") == adaptertest.AllowedOrigin {
		c.Header("Access-Control-Allow-Origin", adaptertest.AllowedOrigin)
		if c.Request.Method == http.MethodOptions && c.GetHeader("Access-Control-Request-Method") != "" {
			c.AbortWithStatus(http.StatusNoContent)
		}
	}
}

func deadline(after time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		ctx, cancel := context.WithTimeout(c.Request.Context(), after)
		defer cancel()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
}

// answerErrors writes what the handlers have left in the context's errors.
func answerErrors(c *gin.Context) {
	c.Next()
	if last := c.Errors.Last(); last != nil && !c.Writer.Written() {
		status := http.StatusInternalServerError
		if errors.Is(last, adaptertest.ErrWrongPassword) {
			status = http.StatusUnauthorized
		}
		c.AbortWithStatus(status)
	}
}

func middleware(limits []adaptertest.Limit) (hs []gin.HandlerFunc) {
	for _, l := range limits {
		var opts []ginlimit.Option
		if l.Denied != "" {
			opts = append(opts, ginlimit.OnDenied(func(c *gin.Context, _ core.Decision) { c.String(http.StatusTeapot, l.Denied) }))
		}
		if l.Expose {
			opts = append(opts, ginlimit.ExposeDecision())
		}
		hs = append(hs, ginlimit.Middleware(l.Checker, opts...))
	}
	return hs
}

func handler(h adaptertest.Handler, answered bool) gin.HandlerFunc {
	return func(c *gin.Context) {
		var status adaptertest.StatusError
		switch err := h(exchange{adaptertest.Exchange{W: c.Writer, R: c.Request}, c}); {
		case errors.As(err, &status):
			_ = c.AbortWithError(int(status), err)
		case err != nil && answered:
			_ = c.Error(err)
		case err != nil:
			c.AbortWithStatus(http.StatusInternalServerError)
		}
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct {
	adaptertest.Exchange
	c *gin.Context
}

func (x exchange) Form(name string) string         { return x.c.PostForm(name) }
func (x exchange) JSON(v any) error                { return x.c.ShouldBindJSON(v) }
func (x exchange) PathValue(name string) string    { return x.c.Param(name) }
func (x exchange) Decision() (core.Decision, bool) { return ginlimit.DecisionFrom(x.c) }
func (x exchange) SetCost(cost int64) bool         { return ginlimit.SetCost(x.c, cost) }

func (x exchange) Deny(d core.Decision) error {
	ginlimit.Deny(x.c, d)
	return nil
}

// Respond sends the status at once also if there is no body.
func (x exchange) Respond(status int, body string) error {
	err := x.Exchange.Respond(status, body)
	x.c.Writer.WriteHeaderNow()
	return err
}

// program serves GET /api.
func program(c core.Checker) (serve func()) {
	r, hs := gin.New(), []gin.HandlerFunc{func(*gin.Context) {}}
	if c != nil {
		hs = append([]gin.HandlerFunc{ginlimit.Middleware(c)}, hs...)
	}
	r.GET("/api", hs...)
	return adaptertest.HTTPProgram(r)
}

func BenchmarkMiddleware(b *testing.B) { adaptertest.Benchmark(b, program) }

func TestAllocations(t *testing.T) {
	adaptertest.Allocations{NoHeaders: 0, Headers: 2, Denied: 3, DeniedNoHeaders: 2, InFlight: 5}.Check(t, program)
}
