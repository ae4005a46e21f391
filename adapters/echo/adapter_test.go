package echolimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers"
	echoreaders "github.com/floodgate-go/floodgate/internal/readers/echo"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := echolimit.Context(r)
			if !found {
				return "", false
			}
			return c.Request().Header.Get(header), true
		},
		Readers:    readers.Names(echoreaders.ByField),
		Serve:      func(t *testing.T, app adaptertest.App) string { return listen(t, build(app)) },
		ServeHTTP2: func(t *testing.T, app adaptertest.App) string { return listenHTTP2(t, build(app)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			return listen(t, perIP(quota, window, opts))
		},
		Flushes:     true,
		SendsAtOnce: true,
		Hijacks:     true,
		Panics:      true,

		SeesCancel:     true,
		TimeoutOutside: true,
	})
}

func listen(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func listenHTTP2(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

func perIP(quota int64, window time.Duration, opts []keyfuncs.ClientIPOption) http.Handler {
	e := newEcho()
	e.GET("/", func(echo.Context) error { return nil }, echolimit.PerIP(quota, window, opts...))
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
		fs = append(fs, map[adaptertest.Middleware]echo.MiddlewareFunc{
			adaptertest.Recovery: middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
			adaptertest.CORS:     middleware.CORSWithConfig(middleware.CORSConfig{AllowOrigins: []string{adaptertest.AllowedOrigin}}),
			adaptertest.Logging: middleware.RequestLoggerWithConfig(middleware.RequestLoggerConfig{
				LogStatus: true, HandleError: true,
				LogValuesFunc: func(echo.Context, middleware.RequestLoggerValues) error { return nil },
			}),

			adaptertest.Deadline:        middleware.ContextTimeout(adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: middleware.ContextTimeout(adaptertest.PatientAfter),

			adaptertest.Headers: first(func(c echo.Context) {
				for name, value := range adaptertest.StaleHeaders {
					c.Response().Header().Set(name, value)
				}
			}),
			adaptertest.Copies:     first(func(c echo.Context) { c.SetRequest(c.Request().Clone(c.Request().Context())) }),
			adaptertest.ReadsBody:  first(func(c echo.Context) { _, _ = io.ReadAll(c.Request().Body) }),
			adaptertest.ReadsPart:  first(func(c echo.Context) { _, _ = io.ReadFull(c.Request().Body, make([]byte, 8)) }),
			adaptertest.ParsesForm: first(func(c echo.Context) { _ = c.FormValue("x") }),
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
		err := h(exchange{c})
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
type exchange struct{ c echo.Context }

func (x exchange) Context() context.Context         { return x.c.Request().Context() }
func (x exchange) Body() ([]byte, error)            { return io.ReadAll(x.c.Request().Body) }
func (x exchange) Form(name string) string          { return x.c.FormValue(name) }
func (x exchange) Read(field, reader string) string { return echoreaders.ByField[field][reader](x.c) }
func (x exchange) JSON(v any) error                 { return x.c.Bind(v) }
func (x exchange) Header(name string) string        { return x.c.Request().Header.Get(name) }
func (x exchange) SetHeader(name, value string)     { x.c.Response().Header().Set(name, value) }
func (x exchange) Decision() (core.Decision, bool)  { return echolimit.DecisionFrom(x.c) }
func (x exchange) PathValue(name string) string     { return x.c.Param(name) }
func (x exchange) SetCost(cost int64) bool          { return echolimit.SetCost(x.c, cost) }

func (x exchange) Deny(d core.Decision) error { return echolimit.Deny(x.c, d) }

func (x exchange) Respond(status int, body string) error {
	x.c.Response().WriteHeader(status)
	if body == "" {
		return nil
	}
	_, err := io.WriteString(x.c.Response(), body)
	return err
}

func (x exchange) Stream(next func() string) error {
	for part := next(); part != ""; part = next() {
		if _, err := io.WriteString(x.c.Response(), part); err != nil {
			return err
		}
		x.c.Response().Flush()
	}
	return nil
}

func (x exchange) Hijack(raw string, end <-chan struct{}) error {
	conn, _, err := x.c.Response().Hijack()
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, raw)
	if end != nil {
		go func() {
			<-end
			_ = conn.Close()
		}()
		return err
	}
	return errors.Join(err, conn.Close())
}
