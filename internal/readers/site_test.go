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
	"github.com/floodgate-go/floodgate/login"
)

var serve = map[string]func(*site) func(raw []byte){"nethttp": netHTTP, "gin": ginSite, "echo": echoSite, "fiber": fiberSite}

func init() { gin.SetMode(gin.ReleaseMode) }

// site is a guarded login form in one framework. Its handlers read the
// username in one way, and find every password wrong.
type site struct {
	framework, reader string
	serve             func(raw []byte) // the request as it came from the wire
	guard             *login.Guard

	reached      bool   // the last request reached the handler
	read         string // the username that the handler read
	counted      string // the account that the guard charged
	countedFound bool
}

func newSite(t testing.TB, framework, reader string) *site {
	t.Helper()
	s := &site{framework: framework, reader: reader}
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return time.Unix(1_764_000_000, 0) }, MaxKeys: 1000}))
	guard, err := login.NewGuard(login.Config{
		Field: "username", Identify: true, ForgetAddresses: true, Store: store, Log: slog.New(slog.DiscardHandler),
		Attempts: core.PerMinute(core.MaxQuota), Failures: core.PerMinute(core.MaxQuota), AccountFailures: core.PerMinute(core.MaxQuota),
		SuspiciousAfter: core.MaxQuota - 1,
		OnEvent: func(e login.Event) {
			if e.Kind == login.Failed {
				s.counted, s.countedFound = e.Username, true
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guard.Close() })
	s.guard = guard
	s.serve = serve[framework](s)
	return s
}

// saw notes what the handler has read.
func (s *site) saw(name string) { s.reached, s.read = true, name }

// try sends a request and reports what is wrong with what was counted.
func (s *site) try(raw []byte) error {
	s.reached, s.read, s.counted, s.countedFound = false, "", "", false
	s.serve(raw)
	switch {
	case !s.reached || s.read == "":
		return nil
	case !s.countedFound:
		return fmt.Errorf("%s, %s: the handler read %q, and nothing was counted", s.framework, s.reader, s.read)
	case s.counted != login.Normalize(s.read):
		return fmt.Errorf("%s, %s: the handler read %q, and %q was counted", s.framework, s.reader, s.read, s.counted)
	}
	return nil
}

// sites are all ways of reading in all frameworks.
func sites(t testing.TB) (all []*site) {
	for framework, names := range map[string][]string{
		"nethttp": slices.Sorted(maps.Keys(nethttpreaders.All)), "gin": slices.Sorted(maps.Keys(ginreaders.All)),
		"echo": slices.Sorted(maps.Keys(echoreaders.All)), "fiber": slices.Sorted(maps.Keys(fiberreaders.All)),
	} {
		for _, reader := range names {
			all = append(all, newSite(t, framework, reader))
		}
	}
	return all
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

func netHTTP(s *site) func([]byte) {
	return overHTTP(httplimit.Middleware(s.guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.saw(nethttpreaders.All[s.reader](r))
		w.WriteHeader(http.StatusUnauthorized)
	})))
}

func ginSite(s *site) func([]byte) {
	e := gin.New()
	e.NoRoute(ginlimit.Middleware(s.guard), func(c *gin.Context) { // any method, any path
		s.saw(ginreaders.All[s.reader](c))
		c.Status(http.StatusUnauthorized)
		c.Writer.WriteHeaderNow()
	})
	return overHTTP(e)
}

func echoSite(s *site) func([]byte) {
	e := echo.New()
	e.Logger.SetOutput(io.Discard)
	e.RouteNotFound("/*", func(c echo.Context) error {
		s.saw(echoreaders.All[s.reader](c))
		return echo.ErrUnauthorized
	}, echolimit.Middleware(s.guard))
	return overHTTP(e)
}

func fiberSite(s *site) func([]byte) {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Use(fiberlimit.Middleware(s.guard), func(c *fiber.Ctx) error {
		s.saw(fiberreaders.All[s.reader](c))
		return fiber.ErrUnauthorized
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
