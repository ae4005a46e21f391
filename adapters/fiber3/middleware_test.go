//go:build unix

package fiber3limit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestMain(m *testing.M) {
	fibertest.Main(m, func(addr string, limiter *core.Limiter) error {
		app := fiber.New()
		app.Get("/", fiber3limit.Middleware(limiter), func(c fiber.Ctx) error { return c.JSON(os.Getpid()) })
		return app.Listen(addr, fiber.ListenConfig{EnablePrefork: true, DisableStartupMessage: true})
	})
}

func TestPrefork(t *testing.T) { fibertest.Prefork(t) }

func TestFiber(t *testing.T) {
	fibertest.Run(t, fibertest.Fiber{New: newServer, Timeout: func(h func(fibertest.Ctx) error, after time.Duration) func(fibertest.Ctx) error {
		limited := timeout.New(func(c fiber.Ctx) error { return h(c) }, timeout.Config{Timeout: after})
		return func(c fibertest.Ctx) error { return limited(c.(fiber.Ctx)) }
	}})
}

func newServer(app fibertest.App) fibertest.Server {
	config := fiber.Config{StreamRequestBody: app.Streams, BodyLimit: app.BodyLimit, DisablePreParseMultipartForm: app.KeepsForms}
	if app.ErrorHandler != nil {
		config.ErrorHandler = func(c fiber.Ctx, err error) error { return app.ErrorHandler(c, err) }
	}
	f := fiber.New(config)
	if app.Before != nil {
		f.Use(func(c fiber.Ctx) error { return app.Before(c) })
	}
	hs := []any{func(c fiber.Ctx) error { return app.Handler(c) }}
	if app.Limiter != nil {
		hs = append([]any{fiber3limit.Middleware(app.Limiter)}, hs...)
	}
	if app.Path == "" {
		app.Path = "/"
	}
	f.All(app.Path, hs[0], hs[1:]...)
	if app.ErrorHandler != nil { // of an application that is a part of another one
		f = fiber.New().Use("/", f).(*fiber.App)
	}
	return server{f}
}

func limiter(quota int64) *core.Limiter {
	return core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(quota)}}}}))
}

// customCtx is an application's own context.
type customCtx struct{ fiber.DefaultCtx }

func (*customCtx) Params(string, ...string) string { return "custom" }

// A handler gets the application's own context from OnDenied, and a decision with it.
func TestAnApplicationWithAContextOfItsOwn(t *testing.T) {
	app := fiber.NewWithCustomCtx(func(app *fiber.App) fiber.CustomCtx {
		return &customCtx{*fiber.NewDefaultCtx(app)}
	})
	denied := fiber3limit.OnDenied(func(c fiber.Ctx, _ core.Decision) error {
		return c.Status(fiber.StatusTeapot).SendString(c.Params("x"))
	})
	app.Get("/", fiber3limit.Middleware(limiter(1), denied, fiber3limit.ExposeDecision()), func(c fiber.Ctx) error {
		d, found := fiber3limit.DecisionFrom(c)
		return c.SendString(fmt.Sprintf("%d %t %s", d.Remaining, found, c.Params("x")))
	})
	for _, want := range []string{"200 0 true custom", "418 custom"} {
		if got := ask(t, app, "/"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// ask returns the status and the body of the answer to a GET.
func ask(t *testing.T, app *fiber.App, path string) string {
	t.Helper()
	resp, err := app.Test(httptest.NewRequest(http.MethodGet, path, http.NoBody), fiber.TestConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// Fiber v3 runs the middlewares of Use for a request that it cannot read. The package comment
// describes this.
func TestAMiddlewareOfUseCountsAMalformedRequest(t *testing.T) {
	w := hooktest.Watch(t)
	for _, limit := range []fiber.Handler{fiber3limit.PerIP(0, time.Minute), fiber3limit.Middleware(w)} {
		app := fiber.New(fiber.Config{ReadBufferSize: 1000})
		app.Use(limit)
		conn, err := net.Dial("tcp", listen(t, app))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\nX: %s\r\n\r\n", strings.Repeat("x", 2000))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Close(), conn.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
	}
	if o := w.Next(t); o.Status < 400 {
		t.Errorf("the limiter learnt %+v", o)
	}
}

// A handler that closes the connection without a response has not logged anybody in.
func TestAConnectionThatTheHandlerDropsCountsAsCanceled(t *testing.T) {
	for name, row := range map[string]struct {
		handler fiber.Handler
		status  int
	}{
		"Drop":             {func(c fiber.Ctx) error { return c.Drop() }, core.StatusCanceled},
		"Drop, a failure":  {func(c fiber.Ctx) error { c.Status(http.StatusUnauthorized); return c.Drop() }, http.StatusUnauthorized},
		"End":              {func(c fiber.Ctx) error { return c.End() }, http.StatusOK},
		"an open one":      {func(fiber.Ctx) error { return nil }, http.StatusOK},
		"an error of Drop": {func(c fiber.Ctx) error { _ = c.Drop(); return c.Drop() }, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			w := hooktest.Watch(t)
			app := fiber.New()
			app.Get("/", fiber3limit.Middleware(w), row.handler)
			if resp, err := http.Get("http://" + listen(t, app) + "/"); err == nil {
				_ = resp.Body.Close()
			}
			if o := w.Next(t); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
				t.Errorf("the limiter learnt %+v, want status %d", o, row.status)
			}
		})
	}
}

// Fiber's middleware for timeouts answers while the handler still runs. The limiter learns
// the answer, and the handler keeps its decision.
func TestAHandlerThatRunsOnAfterATimeoutKeepsItsDecision(t *testing.T) {
	w := hooktest.Watch(t)
	release, read := make(chan struct{}), make(chan string, 1)
	app := fiber.New()
	app.Get("/", fiber3limit.Middleware(w, fiber3limit.ExposeDecision()), timeout.New(func(c fiber.Ctx) error {
		<-release
		d, _ := fiber3limit.DecisionFrom(c)
		read <- d.Rule() // "" if there is no decision
		return nil
	}, timeout.Config{Timeout: time.Millisecond}))
	app.Get("/other", fiber3limit.Middleware(limiter(100)), func(c fiber.Ctx) error { return c.SendString("ok") })
	if got := ask(t, app, "/"); !strings.HasPrefix(got, "408 ") {
		t.Errorf("the client gets %s, want 408", got)
	}
	if o := w.Next(t); o.Status != http.StatusRequestTimeout || o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
	for range 5 {
		if got := ask(t, app, "/other"); got != "200 ok" {
			t.Errorf("another client gets %s", got)
		}
	}
	close(release)
	if got := <-read; got != "r" {
		t.Errorf("the handler reads the decision of rule %q", got)
	}
}
