package echolimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	"github.com/floodgate-go/floodgate/core"
)

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
