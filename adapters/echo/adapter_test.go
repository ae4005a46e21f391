package echolimit_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Name:      "echolimit",
		Mount:     func(c core.Checker, n int) { echolimit.Middleware(c, make([]echolimit.Option, n)...) },
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := echolimit.Context(r)
			if !found {
				return "", false
			}
			return c.Request().Header.Get(header), true
		},
		Serve:      func(t *testing.T, app adaptertest.App) string { return adaptertest.Listen(t, build(app)) },
		ServeHTTP2: func(t *testing.T, app adaptertest.App) string { return adaptertest.ListenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			e := newEcho()
			e.GET("/", func(echo.Context) error { return nil }, echolimit.PerIP(quota, window, opts...))
			return adaptertest.Listen(t, e)
		},
		Flushes:     true,
		SendsAtOnce: true,
		Hijacks:     true,
		Panics:      true,

		SeesCancel:     true,
		TimeoutOutside: true,
		ReturnsErrors:  true,
	})
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

// build makes an Echo application.
func build(app adaptertest.App) http.Handler {
	e := newEcho()
	outside, around := adaptertest.Timeouts(app.Outside)
	e.Use(surround(outside)...)
	if app.AnswersErrors {
		e.HTTPErrorHandler = answerErrors
	}
	if app.User != "" {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.Set(adaptertest.UserKey, app.User)
				return next(c)
			}
		})
	}
	limits, add := append(middlewares(app.Limits), surround(app.Inside)...), e.Add
	if app.Group != "" {
		add = e.Group(app.Group, limits...).Add
	} else {
		e.Use(limits...)
	}
	for _, route := range app.Routes {
		add(route.Method, route.Pattern, handler(route.Handler), middlewares(route.Limits)...)
	}
	return around(e)
}

func surround(ms []adaptertest.Middleware) (fs []echo.MiddlewareFunc) {
	for _, m := range ms {
		if before := adaptertest.Before(m); before != nil {
			fs = append(fs, first(func(c echo.Context) { c.SetRequest(before(c.Response(), c.Request())) }))
			continue
		}
		fs = append(fs, map[adaptertest.Middleware]echo.MiddlewareFunc{
			adaptertest.Recovery: middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
			adaptertest.CORS:     middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{adaptertest.AllowedOrigin}}),
			adaptertest.Logging: middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
				LogStatus: true, HandleError: true,
				LogValuesFunc: func(echo.Context, middleware.RequestLoggerValues) error { return nil },
			}),

			adaptertest.Deadline:        middleware.ContextTimeout(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: middleware.ContextTimeout(adaptertest.PatientAfter),
		}[m])
	}
	return fs
}

// first calls read before the next handler.
func first(read func(echo.Context)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			read(c)
			return next(c)
		}
	}
}

func answerErrors(err error, c echo.Context) {
	if adaptertest.Ignored(err) {
		return
	}
	if errors.Is(err, adaptertest.ErrWrongPassword) && !c.Response().Committed {
		err = echo.NewHTTPError(http.StatusUnauthorized)
	}
	c.Echo().DefaultHTTPErrorHandler(err, c)
}

func middlewares(limits []adaptertest.Limit) (ms []echo.MiddlewareFunc) {
	for _, l := range limits {
		var opts []echolimit.Option
		if l.Denied != "" {
			opts = append(opts, echolimit.OnDenied(func(c echo.Context, _ core.Decision) error { return c.String(http.StatusTeapot, l.Denied) }))
		}
		if l.DeniedError {
			opts = append(opts, echolimit.OnDenied(func(echo.Context, core.Decision) error { return echo.NewHTTPError(http.StatusTeapot) }))
		}
		if l.Expose {
			opts = append(opts, echolimit.ExposeDecision())
		}
		ms = append(ms, echolimit.Middleware(l.Checker, opts...))
	}
	return ms
}

func handler(h adaptertest.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		var status adaptertest.StatusError
		err := h(exchange{adaptertest.Exchange{W: c.Response(), R: c.Request()}, c})
		switch {
		case !errors.As(err, &status):
			return err
		case err == status: //nolint:errorlint // not wrapped
			return echo.NewHTTPError(int(status))
		default:
			return fmt.Errorf("wrapped: %w", echo.NewHTTPError(int(status)))
		}
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct {
	adaptertest.Exchange
	c echo.Context
}

func (x exchange) Form(name string) string         { return x.c.FormValue(name) }
func (x exchange) JSON(v any) error                { return x.c.Bind(v) }
func (x exchange) PathValue(name string) string    { return x.c.Param(name) }
func (x exchange) Decision() (core.Decision, bool) { return echolimit.DecisionFrom(x.c) }
func (x exchange) SetCost(cost int64) bool         { return echolimit.SetCost(x.c, cost) }
func (x exchange) Deny(d core.Decision) error      { return echolimit.Deny(x.c, d) }

// program serves GET /api.
func program(c core.Checker) (serve func()) {
	e, ms := newEcho(), []echo.MiddlewareFunc(nil)
	if c != nil {
		ms = append(ms, echolimit.Middleware(c))
	}
	e.GET("/api", func(echo.Context) error { return nil }, ms...)
	return adaptertest.HTTPProgram(e)
}

func BenchmarkMiddleware(b *testing.B) { adaptertest.Benchmark(b, program) }

// One allocation more than in net/http, because Echo links a route's middlewares anew for
// each request, and one more for the request of a denial, which a hook may keep.
func TestAllocations(t *testing.T) {
	adaptertest.Allocations{NoHeaders: 1, Headers: 3, Denied: 5, DeniedNoHeaders: 4, InFlight: 7}.Check(t, program)
}

// After a request, the response has the writer that it had before the limiter, also if the
// handler fails or panics.
func TestTheWriterIsRestored(t *testing.T) {
	counts := func(core.Request, core.Outcome) bool { return true }
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: counts}}}))
	e, restored := newEcho(), 0
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			before := c.Response().Writer
			defer func() {
				_ = recover()
				if c.Response().Writer == before {
					restored++
				}
			}()
			err := next(c)
			if failed := c.Path() == "/error"; (err != nil) != failed {
				t.Errorf("%s: a middleware before the limiter gets %v", c.Path(), err)
			}
			return err
		}
	}, echolimit.Middleware(l))
	e.GET("/ok", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/error", func(echo.Context) error { return echo.ErrUnauthorized })
	e.GET("/panic", func(echo.Context) error { panic("on purpose") })
	for i, path := range []string{"/ok", "/error", "/panic"} {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
		if restored != i+1 {
			t.Errorf("%s: the response has another writer", path)
		}
	}
}
