package pathtest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/internal/pathtest"
)

// sites are applications in each framework, in each of its modes for paths.
func sites(t testing.TB) (all []pathtest.Site) {
	t.Helper()
	set := pathtest.Policies(t)
	dir := pathtest.Folder(t)
	all = append(all,
		pathtest.Site{Name: "net/http", Address: pathtest.Serve(t, httplimit.Middleware(set)(mux(dir, nil))), HTTP2: true},
		pathtest.Site{Name: "net/http, on each route", Address: pathtest.Serve(t, mux(dir, httplimit.Middleware(set))), HTTP2: true},
	)
	gin.SetMode(gin.ReleaseMode)
	for mode := range 16 {
		g := gin.New()
		g.UseRawPath, g.UnescapePathValues, g.RemoveExtraSlash = mode&1 != 0, mode&2 != 0, mode&4 != 0
		g.RedirectTrailingSlash, g.RedirectFixedPath = mode&8 == 0, mode&8 != 0
		g.Use(ginlimit.Middleware(set))
		for _, m := range pathtest.Methods {
			for _, r := range pathtest.Routes {
				g.Handle(m, r.Route, gin.WrapF(pathtest.Handler(r.Name)))
			}
			g.Handle(m, "/api", gin.WrapF(pathtest.Handler("api")))
			g.Handle(m, "/api/*rest", gin.WrapF(pathtest.Handler("api")))
		}
		g.Static("/files", dir)
		all = append(all, pathtest.Site{Name: fmt.Sprintf("gin, mode %04b", mode), Address: pathtest.Serve(t, g), HTTP2: true})
	}
	for _, where := range []string{"Use", "Pre", "outside"} {
		e := echo.New()
		var h http.Handler = e
		switch where {
		case "Use":
			e.Use(echolimit.Middleware(set))
		case "Pre":
			e.Pre(echolimit.Middleware(set))
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
		if where == "Use" {
			e.Static("/files", dir) // which serves /filesbig.bin too
		} else {
			e.Static("/files/", dir)
		}
		all = append(all, pathtest.Site{Name: "echo, " + where, Address: pathtest.Serve(t, h), HTTP2: true, OuterEcho: where != "Use"})
	}
	for mode := range 8 {
		f := fiber.New(fiber.Config{CaseSensitive: mode&1 != 0, StrictRouting: mode&2 != 0, UnescapePath: mode&4 != 0, DisableStartupMessage: true})
		f.Use(fiberlimit.Middleware(set))
		for _, r := range pathtest.Routes {
			f.All(r.Route, fiberHandler(r.Name))
		}
		f.All("/api", fiberHandler("api"))
		f.All("/api/*", fiberHandler("api"))
		f.Static("/files", dir, fiber.Static{Next: func(c *fiber.Ctx) bool { // or it serves /filesbig.bin too
			return !strings.HasPrefix(strings.ToLower(c.Path()), "/files/")
		}})
		all = append(all, pathtest.Site{Name: fmt.Sprintf("fiber, mode %03b", mode), Address: serveFiber(t, f)})
	}
	return all
}

// mux has the handlers; around, if it is not nil, is put around each of them.
func mux(dir string, around func(http.Handler) http.Handler) http.Handler {
	if around == nil {
		around = func(h http.Handler) http.Handler { return h }
	}
	m := http.NewServeMux()
	for _, r := range pathtest.Routes {
		m.Handle(strings.ReplaceAll(pathtest.Braces(r.Route), " ", "%20"), around(pathtest.Handler(r.Name)))
	}
	m.Handle("/api/", around(pathtest.Handler("api")))
	m.Handle("/files/", around(http.StripPrefix("/files", http.FileServer(http.Dir(dir)))))
	return m
}

func fiberHandler(name string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		c.Set(pathtest.Header, name)
		return nil
	}
}

// Whatever spelling of a path reaches a handler, the handler's policy counts it.
func TestNoSpellingOfAPathGetsAroundItsPolicy(t *testing.T) {
	for _, s := range sites(t) {
		pathtest.Compare(t, s, 200)
	}
}

func FuzzPaths(f *testing.F) { pathtest.Fuzz(f, sites(f)) }
