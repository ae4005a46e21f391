package echolimit_test

import (
	"errors"
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
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Adapter{
		Serve:   func(t *testing.T, app adaptertest.App) string { return listen(t, build(app)) },
		PerIP:   func(t *testing.T, quota int64, window time.Duration) string { return listen(t, perIP(quota, window)) },
		Flushes: true,
		Hijacks: true,
		Panics:  true,
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

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	return e
}

func perIP(quota int64, window time.Duration) http.Handler {
	e := newEcho()
	e.GET("/", func(echo.Context) error { return nil }, echolimit.PerIP(quota, window))
	return e
}

// build makes an Echo application.
func build(app adaptertest.App) http.Handler {
	e := newEcho()
	if app.Recover {
		e.Use(middleware.Recover())
	}
	if app.User != "" {
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				c.Set(adaptertest.UserKey, app.User)
				return next(c)
			}
		})
	}
	e.Use(middlewares(app.Limits)...)
	for _, route := range app.Routes {
		e.Add(route.Method, route.Pattern, handler(route.Handler), middlewares(route.Limits)...)
	}
	return e
}

func middlewares(limits []adaptertest.Limit) (ms []echo.MiddlewareFunc) {
	for _, l := range limits {
		var opts []echolimit.Option
		if l.Denied != "" {
			opts = append(opts, echolimit.OnDenied(func(c echo.Context, _ core.Decision) error { return c.String(http.StatusTeapot, l.Denied) }))
		}
		ms = append(ms, echolimit.Middleware(l.Checker, opts...))
	}
	return ms
}

func handler(h adaptertest.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		var status adaptertest.StatusError
		err := h(exchange{c})
		if errors.As(err, &status) {
			return echo.NewHTTPError(int(status))
		}
		return err
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct{ c echo.Context }

func (x exchange) Body() ([]byte, error)           { return io.ReadAll(x.c.Request().Body) }
func (x exchange) Form(name string) string         { return x.c.FormValue(name) }
func (x exchange) JSON(v any) error                { return x.c.Bind(v) }
func (x exchange) Header(name string) string       { return x.c.Request().Header.Get(name) }
func (x exchange) SetHeader(name, value string)    { x.c.Response().Header().Set(name, value) }
func (x exchange) Decision() (core.Decision, bool) { return echolimit.DecisionFrom(x.c) }

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

func (x exchange) Hijack(raw string) error {
	conn, _, err := x.c.Response().Hijack()
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, raw)
	return errors.Join(err, conn.Close())
}
