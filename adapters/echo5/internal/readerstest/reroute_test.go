package readerstest

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/policy"
)

// second makes a request one of POST /second.
func second(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		c.Request().Method, c.Request().URL.Path = http.MethodPost, "/second"
		return next(c)
	}
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}

func TestARequestThatIsRoutedAgainIsCountedForItsNewPath(t *testing.T) {
	t.Run("before the router and behind it", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			e := newEcho()
			e.Pre(echo5limit.Middleware(set), second)
			e.Use(echo5limit.Middleware(set))
			e.POST("/second", echo.WrapHandler(pathtest.Handler("second")))
			return pathtest.Serve(t, e)
		})
	})
	t.Run("ServeHTTP", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			e := newEcho()
			e.Use(echo5limit.Middleware(set))
			e.GET("/first", second(func(c *echo.Context) error {
				e.ServeHTTP(c.Response(), c.Request())
				return nil
			}))
			e.POST("/second", echo.WrapHandler(pathtest.Handler("second")))
			return pathtest.Serve(t, e)
		})
	})
}

func TestPoliciesThatWaitAndPoliciesByParameter(t *testing.T) {
	pathtest.WaitsByParameter(t, func(set *policy.Set, handle func()) string {
		e, h := newEcho(), func(*echo.Context) error { handle(); return nil }
		e.GET("/tenants/:id", h, echo5limit.Middleware(set))
		e.GET("/slow", h, echo5limit.Middleware(set))
		return pathtest.Serve(t, e)
	})
}
