package readers_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/valyala/fasthttp"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/readers/attack"
	echoreaders "github.com/floodgate-go/floodgate/internal/readers/echo"
	fiberreaders "github.com/floodgate-go/floodgate/internal/readers/fiber"
	ginreaders "github.com/floodgate-go/floodgate/internal/readers/gin"
	nethttpreaders "github.com/floodgate-go/floodgate/internal/readers/nethttp"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// logins are the sites with the field username.
func logins(checker func(*attack.Site) core.Checker) []*attack.Site {
	return slices.Concat(
		attack.SitesOf("net/http", nethttpreaders.All, netHTTP, checker), attack.SitesOf("Gin", ginreaders.All, ginSite, checker),
		attack.SitesOf("Echo", echoreaders.All, echoSite, checker), attack.SitesOf("Fiber", fiberreaders.All, fiberSite, checker),
	)
}

// nested are the sites with the field user[name].
func nested(checker func(*attack.Site) core.Checker) []*attack.Site {
	return slices.Concat(
		attack.SitesOf("net/http", nethttpreaders.Nested, netHTTP, checker), attack.SitesOf("Gin", ginreaders.Nested, ginSite, checker),
		attack.SitesOf("Echo", echoreaders.Nested, echoSite, checker), attack.SitesOf("Fiber", fiberreaders.Nested, fiberSite, checker),
	)
}

// queries are the sites with the query parameter id.
func queries() []*attack.Site {
	checker := attack.Keyed(keyfuncs.Query("id"), func(read string) string { return read })
	return slices.Concat(
		attack.SitesOf("net/http", nethttpreaders.Query, netHTTP, checker), attack.SitesOf("Gin", ginreaders.Query, ginSite, checker),
		attack.SitesOf("Echo", echoreaders.Query, echoSite, checker), attack.SitesOf("Fiber", fiberreaders.Query, fiberSite, checker),
	)
}

// cookies are the sites with the cookie sid. Gin has undone the escapes.
func cookies() []*attack.Site {
	unescaped := func(read string) string {
		v, _ := url.QueryUnescape(read)
		return v
	}
	checker, inGin := attack.Keyed(keyfuncs.Cookie("sid"), unescaped), attack.Keyed(keyfuncs.Cookie("sid"), func(read string) string { return read })
	return slices.Concat(
		attack.SitesOf("net/http", nethttpreaders.Cookies, netHTTP, checker), attack.SitesOf("Gin", ginreaders.Cookies, ginSite, inGin),
		attack.SitesOf("Echo", echoreaders.Cookies, echoSite, checker), attack.SitesOf("Fiber", fiberreaders.Cookies, fiberSite, checker),
	)
}

func netHTTP(s *attack.Site, checker core.Checker, read func(*http.Request) string) func([]byte) {
	return attack.OverHTTP(httplimit.Middleware(checker)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Saw(read(r))
		w.WriteHeader(s.Status(r.Method))
	})))
}

func ginSite(s *attack.Site, checker core.Checker, read func(*gin.Context) string) func([]byte) {
	e := gin.New()
	e.NoRoute(ginlimit.Middleware(checker), func(c *gin.Context) { // any method, any path
		s.Saw(read(c))
		c.Status(s.Status(c.Request.Method))
		c.Writer.WriteHeaderNow()
	})
	return attack.OverHTTP(e)
}

func echoSite(s *attack.Site, checker core.Checker, read func(echo.Context) string) func([]byte) {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.RouteNotFound("/*", func(c echo.Context) error {
		s.Saw(read(c))
		return c.NoContent(s.Status(c.Request().Method))
	}, echolimit.Middleware(checker))
	return attack.OverHTTP(e)
}

func fiberSite(s *attack.Site, checker core.Checker, read func(*fiber.Ctx) string) func([]byte) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(fiberlimit.Middleware(checker), func(c *fiber.Ctx) error {
		s.Saw(read(c))
		return c.SendStatus(s.Status(c.Method()))
	})
	serve := app.Handler()
	buffer := bufio.NewReaderSize(nil, 1<<18)
	return func(raw []byte) {
		var ctx fasthttp.RequestCtx
		buffer.Reset(bytes.NewReader(raw))
		ctx.Init(new(fasthttp.Request), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}, nil)
		if err := ctx.Request.ReadLimitBody(buffer, 1<<20); err != nil {
			return // the server refuses it
		}
		serve(&ctx)
		ctx.Request.RemoveMultipartFormFiles()
	}
}
