package echo5limit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

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
				login := func(c *echo.Context) error {
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
					own = append(own, echo5limit.Middleware(limiter))
				} else {
					e.Use(echo5limit.Middleware(limiter))
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
