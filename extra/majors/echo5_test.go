// Package majors_test tests Echo v5 and Fiber v3 beside policies and login guards, whose
// dependencies are not in the go.mod of these adapters.
package majors_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/policy"
)

func TestAHandlerReadsTheValueThatWasCounted(t *testing.T) {
	t.Run("Echo v5", inEcho.Run)
	t.Run("Fiber v3", inFiber(false).Run)
	t.Run("Fiber v3 with streams", inFiber(true).Run)
}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}

// Whatever spelling of a path reaches a handler, the handler's policy counts it: with policies
// that are mounted after routing, before it, and outside of Echo.
func TestNoSpellingOfAPathGetsAroundItsPolicyInEcho(t *testing.T) {
	set, dir := pathtest.Policies(t), pathtest.Folder(t)
	for _, where := range []string{"Use", "Pre", "outside"} {
		e := newEcho()
		var h http.Handler = e
		switch where {
		case "Use":
			e.Use(echo5limit.Middleware(set))
		case "Pre":
			e.Pre(echo5limit.Middleware(set))
		default:
			h = httplimit.Middleware(set)(e)
		}
		for _, m := range pathtest.Methods {
			for _, r := range pathtest.Routes {
				e.Add(m, r.Route, echo.WrapHandler(pathtest.Handler(r.Name)))
			}
			e.Add(m, "/api", echo.WrapHandler(pathtest.Handler("api")))
			e.Add(m, "/api/*", echo.WrapHandler(pathtest.Handler("api")))
		}
		e.Static("/files/", dir)
		pathtest.Compare(t, pathtest.Site{Name: "echo v5, " + where, Address: pathtest.Serve(t, h), HTTP2: true, OuterEcho: where != "Use"}, 200)
	}
}

// second makes a request one of POST /second.
func second(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		c.Request().Method, c.Request().URL.Path = http.MethodPost, "/second"
		return next(c)
	}
}

func TestARequestThatEchoRoutesAgainIsCountedForItsNewPath(t *testing.T) {
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

func TestPoliciesThatWaitAndPoliciesByParameterInEcho(t *testing.T) {
	pathtest.WaitsByParameter(t, func(set *policy.Set, handle func()) string {
		e, h := newEcho(), func(*echo.Context) error { handle(); return nil }
		e.GET("/tenants/:id", h, echo5limit.Middleware(set))
		e.GET("/slow", h, echo5limit.Middleware(set))
		return pathtest.Serve(t, e)
	})
}
