package echo5limit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
)

var errTeapot = echo.NewHTTPError(http.StatusTeapot, "")

// hidden is a response writer that has no method to find the writer below.
type hidden struct{ http.ResponseWriter }

// The middlewares change what Echo's context refers to.
func TestALimiterCountsOnceAroundAnyMiddleware(t *testing.T) {
	wrap := echo.WrapMiddleware
	for name, m := range map[string]echo.MiddlewareFunc{
		"http.TimeoutHandler": wrap(func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") }),
		"http.StripPrefix":    wrap(func(h http.Handler) http.Handler { return http.StripPrefix("/api", h) }),
		"another writer": wrap(func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(hidden{w}, r) })
		}),
		"another context": func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.SetRequest(c.Request().WithContext(t.Context()))
				return next(c)
			}
		},
		"Echo's Rewrite":        middleware.Rewrite(map[string]string{"/api": "/other"}),
		"Echo's ContextTimeout": middleware.ContextTimeout(time.Minute),
		"Echo's Gzip":           middleware.Gzip(),
		"Echo's BodyDump":       middleware.BodyDump(func(*echo.Context, []byte, []byte, error) {}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, 5, 0)
			e := newEcho()
			e.GET("/api", func(c *echo.Context) error {
				d, found := echo5limit.DecisionFrom(c)
				return c.String(http.StatusOK, fmt.Sprint(d.Remaining, found, len(echo5limit.DecisionsFrom(c))))
			}, echo5limit.Middleware(l), m, echo5limit.Middleware(l))
			for left := 4; left >= 0; left-- {
				w := httptest.NewRecorder()
				e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api", nil))
				if want := fmt.Sprint(left, true, 1); w.Code != http.StatusOK || w.Body.String() != want {
					t.Fatalf("status %d, body %q, want %q", w.Code, w.Body, want)
				}
			}
		})
	}
}

// The request has the same header each time.
func TestARequestThatIsPassedToEchoAgainIsCountedAgain(t *testing.T) {
	l := newLimiter(t, 10, 0)
	e := newEcho()
	e.Use(echo5limit.Middleware(l))
	e.GET("/api", func(c *echo.Context) error {
		d, _ := echo5limit.DecisionFrom(c)
		return c.String(http.StatusOK, fmt.Sprint(d.Remaining))
	})
	e.GET("/again", func(c *echo.Context) error {
		r := c.Request().WithContext(t.Context())
		r.URL.Path = "/api"
		e.ServeHTTP(c.Response(), r)
		d, _ := echo5limit.DecisionFrom(c)
		_, err := fmt.Fprint(c.Response(), ", ", d.Remaining)
		return err
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/again", nil))
	if got := w.Body.String(); got != "8, 9" {
		t.Errorf("the handlers read %q", got)
	}
}

// Without the option, only the handlers behind the limiter find it.
func TestExposeDecisionIsForMiddlewaresBeforeTheLimiter(t *testing.T) {
	for _, expose := range []bool{false, true} {
		var opts []echo5limit.Option
		if expose {
			opts = append(opts, echo5limit.ExposeDecision())
		}
		e, got := newEcho(), ""
		read := func(c *echo.Context) {
			d, found := echo5limit.DecisionFrom(c)
			got += fmt.Sprint(d.Remaining, " ", found, " ", len(echo5limit.DecisionsFrom(c)), ", ")
		}
		e.HTTPErrorHandler = func(c *echo.Context, err error) { read(c); echo.DefaultHTTPErrorHandler(false)(c, err) }
		e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				read(c)
				err := next(c)
				read(c)
				return err
			}
		}, echo5limit.Middleware(newLimiter(t, 20, 0), opts...))
		e.GET("/api", func(*echo.Context) error { return errTeapot }, echo5limit.Middleware(newLimiter(t, 10, 0), opts...))
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api", nil))
		if want := map[bool]string{false: "0 false 0, 0 false 0, 0 false 0, ", true: "0 false 0, 9 true 2, 9 true 2, "}[expose]; got != want {
			t.Errorf("ExposeDecision %t: the middleware and the error handler read %q, want %q", expose, got, want)
		}
	}
}

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	e := newEcho()
	for _, c := range []*echo.Context{e.NewContext(nil, nil), echo.NewContext(nil, nil), e.NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())} {
		if d, found := echo5limit.DecisionFrom(c); found || d.Allowed || len(echo5limit.DecisionsFrom(c)) > 0 {
			t.Errorf("found %v", d)
		}
	}
}

// A panic of a hook leaves nothing behind for the next request.
func TestAPanicOfACheckerIsNotRecovered(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Limits: []core.Limit{core.PerHour(5)},
		Key: func(dst []byte, r core.Request) ([]byte, error) {
			if r.Path() == "/panic" {
				panic("key")
			}
			return dst, nil
		},
	}}}))
	e := newEcho()
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}))
	e.GET("/*", func(c *echo.Context) error { return c.NoContent(http.StatusOK) }, echo5limit.Middleware(l))
	for path, want := range map[string]int{"/panic": http.StatusInternalServerError, "/": http.StatusOK} {
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}
