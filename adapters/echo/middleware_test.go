package echolimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Many applications write no response to an error of a context, because they assume that the
// client has gone away. If the context was another one, the client is still there and gets
// 200. That is no success.
func TestAContextErrorThatTheErrorHandlerIgnoresCountsAsCanceled(t *testing.T) {
	for name, row := range map[string]struct {
		err    error
		status int
	}{
		"canceled":          {fmt.Errorf("database: %w", context.Canceled), core.StatusCanceled},
		"deadline exceeded": {context.DeadlineExceeded, core.StatusCanceled},
		"another error":     {errors.New("wrong password"), http.StatusUnauthorized},
		"none":              {nil, http.StatusOK},
	} {
		var learnt core.Outcome
		l := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(10)},
			Counts: func(_ core.Request, o core.Outcome) bool {
				learnt = o
				return true
			},
		}}}))
		e := newEcho()
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !c.Response().Committed {
				_ = c.NoContent(http.StatusUnauthorized)
			}
		}
		e.POST("/", func(echo.Context) error { return row.err }, echolimit.Middleware(l))
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		if learnt.Status != row.status || learnt.Canceled != (row.status == core.StatusCanceled) {
			t.Errorf("%s: the limiter learnt %+v, want status %d", name, learnt, row.status)
		}
	}
}

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	e := newEcho()
	for _, c := range []echo.Context{e.NewContext(nil, nil), e.NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())} {
		if d, found := echolimit.DecisionFrom(c); found || d.Allowed || echolimit.SetCost(c, 1) {
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
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{DisableErrorHandler: true, LogErrorFunc: func(echo.Context, error, []byte) error { return echo.ErrTeapot }}))
	e.GET("/*", func(c echo.Context) error { return c.NoContent(http.StatusOK) }, echolimit.Middleware(l))
	for path, want := range map[string]int{"/panic": http.StatusTeapot, "/": http.StatusOK} {
		w := httptest.NewRecorder()
		if e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil)); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

// two is a limiter that allows two requests, and wants to know how they end.
func two() *core.Limiter {
	counts := func(core.Request, core.Outcome) bool { return true }
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(2)}, Counts: counts}}}))
}

// The error of OnDenied is the request's: Echo's error handler answers it. After each request, the response
// has the writer that it had before the limiter.
func TestTheErrorOfOnDeniedIsAnswered(t *testing.T) {
	app := echo.New()
	restored := 0
	app.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			before := c.Response().Writer
			err := next(c)
			if c.Response().Writer == before {
				restored++
			}
			return err
		}
	}, echolimit.Middleware(two(), echolimit.OnDenied(func(echo.Context, core.Decision) error {
		return echo.NewHTTPError(http.StatusTeapot, "no")
	})))
	app.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "yes") })
	for i, want := range []int{200, 200, 418} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != want || w.Header().Get("Retry-After") == "" != (want == 200) {
			t.Errorf("request %d: %d, want %d; %v", i+1, w.Code, want, w.Header())
		}
		if restored != i+1 {
			t.Errorf("request %d: the response has another writer", i+1)
		}
	}
}

// A request whose method is overridden reaches the handler of another method. The middleware
// that reads the method from the form parses the form, so that the limiter denies the request.
func TestMethodOverrideDoesNotBypassALimiter(t *testing.T) {
	for _, place := range []string{"before the router", "on the routes"} {
		for _, override := range []string{"Pre", "Use"} {
			t.Run(override+", limiter "+place, func(t *testing.T) {
				limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
					{Name: "user", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerHour(3)}},
				}}))
				e, attempts, denied := newEcho(), 0, 0
				login := func(c echo.Context) error {
					attempts++
					return echo.ErrUnauthorized
				}
				change := middleware.MethodOverrideWithConfig(middleware.MethodOverrideConfig{Getter: middleware.MethodFromForm("_method")})
				fromHeader := middleware.MethodOverride()
				if override == "Pre" {
					e.Pre(change, fromHeader)
				} else {
					e.Use(change, fromHeader)
				}
				var own []echo.MiddlewareFunc
				if place == "on the routes" {
					own = append(own, echolimit.Middleware(limiter))
				} else {
					e.Use(echolimit.Middleware(limiter))
				}
				e.POST("/login", login, own...)
				e.PUT("/login", login, own...)
				e.GET("/login", login, own...)
				for _, header := range []string{"", "PUT", "GET", "DELETE", ""} {
					for _, form := range []string{"username=alice", "username=alice&_method=GET", "username=alice&_method=PUT"} {
						r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form))
						r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
						if header != "" {
							r.Header.Set("X-HTTP-Method-Override", header)
						}
						w := httptest.NewRecorder()
						e.ServeHTTP(w, r)
						if w.Code == http.StatusBadRequest && strings.Contains(w.Body.String(), "put the limiter first") {
							denied++
						}
					}
				}
				// The middleware that looks for the method in the form has parsed it.
				if attempts > 0 || denied == 0 {
					t.Errorf("%d attempts reached the handler, and %d were denied", attempts, denied)
				}
			})
		}
	}
}

func TestANilOptionIsNamed(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)}}}}))
	defer func() {
		const want = "echolimit: an option is nil: write one such as echolimit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	echolimit.Middleware(l, nil)
}
