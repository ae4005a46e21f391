package echo5limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
)

// hidden is a response writer that has no method to find the writer below.
type hidden struct{ http.ResponseWriter }

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	e := newEcho()
	for _, c := range []*echo.Context{e.NewContext(nil, nil), echo.NewContext(nil, nil), e.NewContext(httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder())} {
		if d, found := echo5limit.DecisionFrom(c); found || d.Allowed || echo5limit.SetCost(c, 1) {
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
