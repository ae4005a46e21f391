package echo5limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// two is a limiter that allows two requests, and wants to know how they end.
func two() *core.Limiter {
	counts := func(core.Request, core.Outcome) bool { return true }
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(2)}, Counts: counts}}}))
}

// The error of OnDenied is the request's: Echo's error handler answers it. After each request, the context has
// the response that it had before the limiter.
func TestTheErrorOfOnDeniedIsAnswered(t *testing.T) {
	app := echo.New()
	restored := 0
	app.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			before := c.Response()
			err := next(c)
			if c.Response() == before {
				restored++
			}
			return err
		}
	}, echo5limit.Middleware(two(), echo5limit.OnDenied(func(*echo.Context, core.Decision) error {
		return echo.NewHTTPError(http.StatusTeapot, "no")
	})))
	app.GET("/", func(c *echo.Context) error { return c.String(http.StatusOK, "yes") })
	for i, want := range []int{200, 200, 418} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != want || w.Header().Get("Retry-After") == "" != (want == 200) {
			t.Errorf("request %d: %d, want %d; %v", i+1, w.Code, want, w.Header())
		}
		if restored != i+1 {
			t.Errorf("request %d: the context has another response", i+1)
		}
	}
}
