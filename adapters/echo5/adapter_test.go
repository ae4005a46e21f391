package echo5limit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Name:      "echo5limit",
		Mount:     func(c core.Checker, n int) { echo5limit.Middleware(c, make([]echo5limit.Option, n)...) },
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := echo5limit.Context(r)
			if !found {
				return "", false
			}
			return c.Request().Header.Get(header), true
		},
		Serve:      func(t *testing.T, app adaptertest.App) string { return adaptertest.Listen(t, build(app)) },
		ServeHTTP2: func(t *testing.T, app adaptertest.App) string { return adaptertest.ListenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			e := newEcho()
			e.GET("/", func(*echo.Context) error { return nil }, echo5limit.PerIP(quota, window, opts...))
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
	e.Logger = slog.New(slog.DiscardHandler)
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
			return func(c *echo.Context) error {
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
			fs = append(fs, first(func(c *echo.Context) { c.SetRequest(before(c.Response(), c.Request())) }))
			continue
		}
		fs = append(fs, map[adaptertest.Middleware]echo.MiddlewareFunc{
			adaptertest.Recovery: middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
			adaptertest.CORS:     middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{adaptertest.AllowedOrigin}}),
			adaptertest.Logging: middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
				LogStatus: true, HandleError: true,
				LogValuesFunc: func(*echo.Context, middleware.RequestLoggerValues) error { return nil },
			}),

			adaptertest.Deadline:        middleware.ContextTimeout(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: middleware.ContextTimeout(adaptertest.PatientAfter),
		}[m])
	}
	return fs
}

// first calls read before the next handler.
func first(read func(*echo.Context)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			read(c)
			return next(c)
		}
	}
}

func answerErrors(c *echo.Context, err error) {
	if adaptertest.Ignored(err) {
		return
	}
	if errors.Is(err, adaptertest.ErrWrongPassword) && !committed(c) {
		err = echo.ErrUnauthorized
	}
	echo.DefaultHTTPErrorHandler(false)(c, err)
}

// committed reports whether a response has been begun.
func committed(c *echo.Context) bool {
	r, err := echo.UnwrapResponse(c.Response())
	return err == nil && r.Committed
}

func middlewares(limits []adaptertest.Limit) (ms []echo.MiddlewareFunc) {
	for _, l := range limits {
		var opts []echo5limit.Option
		if l.Denied != "" {
			opts = append(opts, echo5limit.OnDenied(func(c *echo.Context, _ core.Decision) error { return c.String(http.StatusTeapot, l.Denied) }))
		}
		if l.DeniedError {
			opts = append(opts, echo5limit.OnDenied(func(*echo.Context, core.Decision) error { return echo.NewHTTPError(http.StatusTeapot, "") }))
		}
		if l.Expose {
			opts = append(opts, echo5limit.ExposeDecision())
		}
		ms = append(ms, echo5limit.Middleware(l.Checker, opts...))
	}
	return ms
}

func handler(h adaptertest.Handler) echo.HandlerFunc {
	return func(c *echo.Context) error {
		var status adaptertest.StatusError
		err := h(exchange{adaptertest.Exchange{W: c.Response(), R: c.Request()}, c})
		switch {
		case !errors.As(err, &status):
			return err
		case err == status: //nolint:errorlint // not wrapped
			return echo.NewHTTPError(int(status), "")
		default:
			return fmt.Errorf("wrapped: %w", echo.NewHTTPError(int(status), ""))
		}
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct {
	adaptertest.Exchange
	c *echo.Context
}

func (x exchange) Form(name string) string         { return x.c.FormValue(name) }
func (x exchange) JSON(v any) error                { return x.c.Bind(v) }
func (x exchange) PathValue(name string) string    { return x.c.Param(name) }
func (x exchange) Decision() (core.Decision, bool) { return echo5limit.DecisionFrom(x.c) }
func (x exchange) SetCost(cost int64) bool         { return echo5limit.SetCost(x.c, cost) }
func (x exchange) Deny(d core.Decision) error      { return echo5limit.Deny(x.c, d) }

// program serves GET /api.
func program(c core.Checker) (serve func()) {
	e, ms := newEcho(), []echo.MiddlewareFunc(nil)
	if c != nil {
		ms = append(ms, echo5limit.Middleware(c))
	}
	e.GET("/api", func(*echo.Context) error { return nil }, ms...)
	return adaptertest.HTTPProgram(e)
}

func BenchmarkMiddleware(b *testing.B) { adaptertest.Benchmark(b, program) }

// One allocation more than in net/http, because Echo links a route's middlewares anew for
// each request.
func TestAllocations(t *testing.T) {
	adaptertest.Allocations{NoHeaders: 1, Headers: 3, Denied: 4, DeniedNoHeaders: 3, InFlight: 6}.Check(t, program)
}
