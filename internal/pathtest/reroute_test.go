package pathtest_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/policy"
)

// reroutes are applications in which the handler of GET /first gives the
// request to the handler of POST /second, by the framework's own means.
var reroutes = []struct {
	name  string
	serve func(t *testing.T, set *policy.Set) (address string)
}{
	{"fiber, RestartRouting", func(t *testing.T, set *policy.Set) string {
		f := fiber.New(fiber.Config{DisableStartupMessage: true})
		f.Use(fiberlimit.Middleware(set))
		f.Get("/first", func(c *fiber.Ctx) error {
			c.Method(http.MethodPost)
			c.Path("/second")
			return c.RestartRouting()
		})
		f.Post("/second", fiberHandler("second"))
		return serveFiber(t, f)
	}},
	{"fiber, the next route", func(t *testing.T, set *policy.Set) string {
		f := fiber.New(fiber.Config{DisableStartupMessage: true})
		f.Use(fiberlimit.Middleware(set), func(c *fiber.Ctx) error {
			c.Method(http.MethodPost)
			c.Path("/second")
			return c.Next()
		})
		f.Post("/second", fiberlimit.Middleware(set), fiberHandler("second"))
		return serveFiber(t, f)
	}},
	{"net/http, another mux", func(t *testing.T, set *policy.Set) string {
		limited := httplimit.Middleware(set)
		mux := http.NewServeMux()
		mux.Handle("POST /second", pathtest.Handler("second"))
		inner, outer := limited(mux), http.NewServeMux()
		outer.HandleFunc("GET /first", func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path, r.Method = "/second", http.MethodPost
			inner.ServeHTTP(w, r)
		})
		return pathtest.Serve(t, limited(outer))
	}},
	{"net/http, http.StripPrefix", func(t *testing.T, set *policy.Set) string {
		limited := httplimit.Middleware(set)
		inner := http.NewServeMux()
		inner.Handle("POST /second", pathtest.Handler("second"))
		stripped := http.StripPrefix("/v1", limited(inner))
		return pathtest.Serve(t, limited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			r.URL.Path, r.Method = "/v1/second", http.MethodPost
			stripped.ServeHTTP(w, r)
		})))
	}},
	{"net/http, the same handler", func(t *testing.T, set *policy.Set) string {
		mux := http.NewServeMux()
		app := httplimit.Middleware(set)(mux)
		mux.HandleFunc("GET /first", func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path, r.Method, r.Pattern = "/second", http.MethodPost, ""
			app.ServeHTTP(w, r)
		})
		mux.Handle("POST /second", pathtest.Handler("second"))
		return pathtest.Serve(t, app)
	}},
	{"gin, HandleContext", func(t *testing.T, set *policy.Set) string {
		g := gin.New()
		g.Use(ginlimit.Middleware(set))
		g.GET("/first", func(c *gin.Context) {
			c.Request.URL.Path, c.Request.Method = "/second", http.MethodPost
			g.HandleContext(c)
		})
		g.POST("/second", gin.WrapF(pathtest.Handler("second")))
		return pathtest.Serve(t, g)
	}},
	{"gin, the next handler", func(t *testing.T, set *policy.Set) string {
		g := gin.New()
		g.Use(ginlimit.Middleware(set))
		g.GET("/first", func(c *gin.Context) {
			c.Request.URL.Path, c.Request.Method = "/second", http.MethodPost
		}, ginlimit.Middleware(set), gin.WrapF(pathtest.Handler("second")))
		return pathtest.Serve(t, g)
	}},
	{"echo, ServeHTTP", func(t *testing.T, set *policy.Set) string {
		e := echo.New()
		e.Use(echolimit.Middleware(set))
		e.GET("/first", func(c echo.Context) error {
			r := c.Request()
			r.URL.Path, r.Method = "/second", http.MethodPost
			e.ServeHTTP(c.Response(), r)
			return nil
		})
		e.POST("/second", echo.WrapHandler(pathtest.Handler("second")))
		return pathtest.Serve(t, e)
	}},
	{"echo, a middleware before the router", func(t *testing.T, set *policy.Set) string {
		e := echo.New()
		e.Pre(echolimit.Middleware(set), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c echo.Context) error {
				r := c.Request()
				r.URL.Path, r.Method = "/second", http.MethodPost
				return next(c)
			}
		})
		e.Use(echolimit.Middleware(set))
		e.POST("/second", echo.WrapHandler(pathtest.Handler("second")))
		return pathtest.Serve(t, e)
	}},
}

// A request that passes the policies again with another method and path is counted for these.
func TestARequestThatIsRoutedAgainIsCountedForItsNewPath(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	for _, c := range reroutes {
		t.Run(c.name, func(t *testing.T) {
			pathtest.Rerouted(t, func(set *policy.Set) string { return c.serve(t, set) })
		})
	}
}

func serveFiber(t testing.TB, f *fiber.App) string {
	t.Helper()
	l, ended := pathtest.Listen(t), make(chan error, 1)
	go func() { ended <- f.Listener(l) }()
	t.Cleanup(func() {
		if err := f.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return l.Addr().String()
}
