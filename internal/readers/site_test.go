package readers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gofiber/fiber/v2"
	"github.com/labstack/echo/v4"
	"github.com/valyala/fasthttp"

	echolimit "github.com/floodgate-go/floodgate/adapters/echo"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	echoreaders "github.com/floodgate-go/floodgate/internal/readers/echo"
	fiberreaders "github.com/floodgate-go/floodgate/internal/readers/fiber"
	ginreaders "github.com/floodgate-go/floodgate/internal/readers/gin"
	nethttpreaders "github.com/floodgate-go/floodgate/internal/readers/nethttp"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

func init() { gin.SetMode(gin.ReleaseMode) }

// site is an application in one framework. Its handlers read a value in one
// way. They answer a POST with 401, and a request with another method too unless
// form is set: then with 200, as a handler does that sends the page of the form.
type site struct {
	name      string // of the framework and of the reader
	serve     func(raw []byte)
	canonical func(read string) string // what must have been counted
	form      bool

	reached      bool   // the last request reached the handler
	read         string // what the handler read
	counted      string
	countedFound bool
}

// saw notes what the handler has read.
func (s *site) saw(value string) { s.reached, s.read = true, value }

// status returns the handler's answer to a request with a method.
func (s *site) status(method string) int {
	if s.form && method != http.MethodPost {
		return http.StatusOK
	}
	return http.StatusUnauthorized
}

// count notes what was counted.
func (s *site) count(value string) { s.counted, s.countedFound = value, true }

// try sends a request and reports what is wrong with what was counted.
func (s *site) try(raw []byte) error {
	s.reached, s.read, s.counted, s.countedFound = false, "", "", false
	s.serve(raw)
	switch {
	case !s.reached || s.read == "":
		return nil
	case !s.countedFound:
		return fmt.Errorf("%s: the handler read %q, and nothing was counted", s.name, s.read)
	case s.counted != s.canonical(s.read):
		return fmt.Errorf("%s: the handler read %q, and %q was counted", s.name, s.read, s.counted)
	}
	return nil
}

// guarded makes the checker of a site: a login guard that counts a field.
func guarded(t testing.TB, change func(*login.Config)) func(*site) core.Checker {
	return func(s *site) core.Checker {
		s.canonical = login.Normalize
		c := login.Config{
			Identify: true, ForgetAddresses: true, Log: slog.New(slog.DiscardHandler),
			Store:    core.Must(core.NewMemory(core.MemoryConfig{Clock: frozen, MaxKeys: 1000})),
			Attempts: core.PerMinute(core.MaxQuota), Failures: core.PerMinute(core.MaxQuota), AccountFailures: core.PerMinute(core.MaxQuota),
			SuspiciousAfter: core.MaxQuota - 1,
			OnEvent: func(e login.Event) {
				if e.Kind == login.EventFailed {
					s.count(e.Username)
				}
			},
		}
		change(&c)
		guard := core.Must(login.NewGuard(c))
		t.Cleanup(func() { _ = guard.Close() })
		return guard
	}
}

func byField(field string) func(*login.Config) {
	return func(c *login.Config) { c.Field = field }
}

// keyed makes the checker of a site: a limiter with a key.
func keyed(key core.KeyFunc, canonical func(string) string) func(*site) core.Checker {
	return func(s *site) core.Checker {
		s.canonical = canonical
		store := core.Must(core.NewMemory(core.MemoryConfig{Clock: frozen, MaxKeys: 1000}))
		return core.Must(core.New(core.Config{Name: "keyed", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(core.MaxQuota)}, Key: func(dst []byte, r core.Request) ([]byte, error) {
			k, err := key(dst, r)
			s.count(string(k))
			return k, err
		}}}}))
	}
}

func frozen() time.Time { return time.Unix(1_764_000_000, 0) }

// sitesOf returns a site for each of a framework's readers.
func sitesOf[C any](framework string, readers map[string]func(C) string, serve func(*site, core.Checker, func(C) string) func([]byte), checker func(*site) core.Checker) (all []*site) {
	for _, name := range slices.Sorted(maps.Keys(readers)) {
		s := &site{name: framework + ", " + name}
		s.serve = serve(s, checker(s), readers[name])
		all = append(all, s)
	}
	return all
}

// logins are the sites with the field username.
func logins(checker func(*site) core.Checker) []*site {
	return slices.Concat(
		sitesOf("net/http", nethttpreaders.All, netHTTP, checker), sitesOf("Gin", ginreaders.All, ginSite, checker),
		sitesOf("Echo", echoreaders.All, echoSite, checker), sitesOf("Fiber", fiberreaders.All, fiberSite, checker),
	)
}

// nested are the sites with the field user[name].
func nested(checker func(*site) core.Checker) []*site {
	return slices.Concat(
		sitesOf("net/http", nethttpreaders.Nested, netHTTP, checker), sitesOf("Gin", ginreaders.Nested, ginSite, checker),
		sitesOf("Echo", echoreaders.Nested, echoSite, checker), sitesOf("Fiber", fiberreaders.Nested, fiberSite, checker),
	)
}

// queries are the sites with the query parameter id.
func queries() []*site {
	checker := keyed(keyfuncs.Query("id"), func(read string) string { return read })
	return slices.Concat(
		sitesOf("net/http", nethttpreaders.Query, netHTTP, checker), sitesOf("Gin", ginreaders.Query, ginSite, checker),
		sitesOf("Echo", echoreaders.Query, echoSite, checker), sitesOf("Fiber", fiberreaders.Query, fiberSite, checker),
	)
}

// cookies are the sites with the cookie sid. Gin has undone the escapes.
func cookies() []*site {
	unescaped := func(read string) string {
		v, _ := url.QueryUnescape(read)
		return v
	}
	checker, inGin := keyed(keyfuncs.Cookie("sid"), unescaped), keyed(keyfuncs.Cookie("sid"), func(read string) string { return read })
	return slices.Concat(
		sitesOf("net/http", nethttpreaders.Cookies, netHTTP, checker), sitesOf("Gin", ginreaders.Cookies, ginSite, inGin),
		sitesOf("Echo", echoreaders.Cookies, echoSite, checker), sitesOf("Fiber", fiberreaders.Cookies, fiberSite, checker),
	)
}

// overHTTP sends requests to a handler of net/http.
func overHTTP(h http.Handler) func([]byte) {
	return func(raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return // the server refuses it
		}
		r.RemoteAddr = "192.0.2.1:4711"
		h.ServeHTTP(httptest.NewRecorder(), r)
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll()
		}
	}
}

func netHTTP(s *site, checker core.Checker, read func(*http.Request) string) func([]byte) {
	return overHTTP(httplimit.Middleware(checker)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.saw(read(r))
		w.WriteHeader(s.status(r.Method))
	})))
}

func ginSite(s *site, checker core.Checker, read func(*gin.Context) string) func([]byte) {
	e := gin.New()
	e.NoRoute(ginlimit.Middleware(checker), func(c *gin.Context) { // any method, any path
		s.saw(read(c))
		c.Status(s.status(c.Request.Method))
		c.Writer.WriteHeaderNow()
	})
	return overHTTP(e)
}

func echoSite(s *site, checker core.Checker, read func(echo.Context) string) func([]byte) {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.RouteNotFound("/*", func(c echo.Context) error {
		s.saw(read(c))
		return c.NoContent(s.status(c.Request().Method))
	}, echolimit.Middleware(checker))
	return overHTTP(e)
}

func fiberSite(s *site, checker core.Checker, read func(*fiber.Ctx) string) func([]byte) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(fiberlimit.Middleware(checker), func(c *fiber.Ctx) error {
		s.saw(read(c))
		return c.SendStatus(s.status(c.Method()))
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
