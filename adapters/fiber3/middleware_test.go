//go:build unix

package fiber3limit_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/timeout"
	"github.com/valyala/fasthttp"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The body does not reach a handler. The package comment describes this.
func TestAClientThatWaitsForContinueIsDeniedAfterItsBody(t *testing.T) {
	app := newFiber(false, false)
	app.Post("/", fiber3limit.PerIP(0, time.Minute), func(fiber.Ctx) error {
		t.Error("the handler runs")
		return nil
	})
	conn, err := net.Dial("tcp", listen(t, app))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of no interest any more
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	body := strings.Repeat("x", 1000)
	_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	r := bufio.NewReader(conn)
	for _, want := range []int{http.StatusContinue, http.StatusTooManyRequests} {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("status %d, want %d", resp.StatusCode, want)
		}
		if want == http.StatusContinue {
			_, _ = fmt.Fprint(conn, body)
		}
	}
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
	app.Get("/", fiber3limit.Middleware(newLimiter(t, 1, 0), denied, fiber3limit.ExposeDecision()), func(c fiber.Ctx) error {
		d, found := fiber3limit.DecisionFrom(c)
		return c.SendString(fmt.Sprint(d.Remaining, found, c.Params("x")))
	})
	for _, want := range []string{"200 0 true custom", "418 custom"} {
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody), untimed)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, 100)
		n, _ := resp.Body.Read(body)
		_ = resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body[:n])); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Fiber v3 runs the middlewares of Use for a request that it cannot read. The package comment
// describes this.
func TestAMiddlewareOfUseCountsAMalformedRequest(t *testing.T) {
	l, next := outcomesOf(t)
	app := fiber.New(fiber.Config{ReadBufferSize: 1000})
	app.Use(fiber3limit.PerIP(0, time.Minute))
	counting := fiber.New(fiber.Config{ReadBufferSize: 1000})
	counting.Use(fiber3limit.Middleware(l))
	for _, a := range []*fiber.App{app, counting} {
		conn, err := net.Dial("tcp", listen(t, a))
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
	if o := next(); o.Status < 400 {
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
		"the connection":   {func(c fiber.Ctx) error { return c.RequestCtx().Conn().Close() }, core.StatusCanceled},
		"Drop, a failure":  {func(c fiber.Ctx) error { c.Status(http.StatusUnauthorized); return c.Drop() }, http.StatusUnauthorized},
		"End":              {func(c fiber.Ctx) error { return c.End() }, http.StatusOK},
		"an open one":      {func(fiber.Ctx) error { return nil }, http.StatusOK},
		"an error of Drop": {func(c fiber.Ctx) error { _ = c.Drop(); return c.Drop() }, http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			l, next := outcomesOf(t)
			app := fiber.New()
			app.Get("/", fiber3limit.Middleware(l), row.handler)
			if resp, err := http.Get("http://" + listen(t, app) + "/"); err == nil {
				_ = resp.Body.Close()
			}
			if o := next(); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
				t.Errorf("the limiter learnt %+v, want status %d", o, row.status)
			}
		})
	}
}

// If the application's ErrorHandler returns an error, the client gets 500, as without the
// limiter, and so does the outcome.
func TestAFailingErrorHandlerCountsAs500(t *testing.T) {
	wrong := errors.New("wrong password")
	for name, row := range map[string]struct {
		answer func(fiber.Ctx, error) error
		status int
		body   string
	}{
		"without a word":        {func(fiber.Ctx, error) error { return errors.New("no template") }, 500, "Internal Server Error"},
		"with its own error":    {func(_ fiber.Ctx, err error) error { return err }, 500, "Internal Server Error"},
		"after a success":       {func(c fiber.Ctx, err error) error { _ = c.SendString("welcome"); return err }, 500, "welcome"},
		"and one that does not": {func(c fiber.Ctx, _ error) error { return c.Status(401).SendString("no") }, 401, "no"},
	} {
		for _, limited := range []bool{true, false} {
			l, next := outcomesOf(t)
			app := fiber.New(fiber.Config{ErrorHandler: row.answer})
			if limited {
				app.Use(fiber3limit.Middleware(l))
			}
			app.Get("/", func(fiber.Ctx) error { return wrong })
			resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody), untimed)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != row.status || string(body) != row.body {
				t.Errorf("%s: limited %v: status %d, body %q, want %d, %q", name, limited, resp.StatusCode, body, row.status, row.body)
			}
			if !limited {
				continue
			}
			if o := next(); o.Status != row.status || o.Panicked || o.Canceled {
				t.Errorf("%s: the limiter learnt %+v", name, o)
			}
		}
	}
}

// The panic keeps its value.
func TestAPanicCountsAsAFailureAndIsNotRecovered(t *testing.T) {
	l, next := outcomesOf(t)
	app := fiber.New()
	app.Get("/", fiber3limit.Middleware(l), func(c fiber.Ctx) error {
		_ = c.SendString("welcome")
		panic("the handler's")
	})
	serve := app.Handler()
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "the handler's" {
					t.Errorf("recovered %v", v)
				}
			}()
			var ctx fasthttp.RequestCtx
			ctx.Request.SetRequestURI("/")
			serve(&ctx)
		}()
		if o := next(); !o.Panicked || o.Status != http.StatusInternalServerError || o.Canceled {
			t.Errorf("the limiter learnt %+v", o)
		}
	}
}

// fasthttp writes a multipart form anew after it has parsed it. A form with its boundary in a
// part is refused then, because that may have made other parts. If the application parses the forms itself,
// the body is as it was received, and a key function reads it.
func TestABoundaryInAPartOfAForm(t *testing.T) {
	for keeps, want := range map[bool][]int{true: {200, 429, 200}, false: {400, 400, 400}} {
		app := fiber.New(fiber.Config{DisablePreParseMultipartForm: keeps})
		l := core.Must(core.New(core.Config{Log: slog.New(slog.DiscardHandler), Rules: []core.Rule{{Name: "r", Key: keyfuncs.PostField("username"), Limits: []core.Limit{core.PerHour(1)}}}}))
		app.Post("/", fiber3limit.Middleware(l), func(fiber.Ctx) error { return nil })
		var got []int
		for _, name := range []string{"alice", "alice", "bob"} {
			body := "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\n" + name + "\r\n" +
				"--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na--XXb\r\n--XX--\r\n"
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "multipart/form-data; boundary=XX")
			resp, err := app.Test(r, untimed)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			got = append(got, resp.StatusCode)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the application parses forms itself: %t: statuses %v, want %v", keeps, got, want)
		}
	}
}

func TestANilOptionIsNamed(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerHour(1)}}}}))
	defer func() {
		const want = "fiber3limit: an option is nil: write one such as fiber3limit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	fiber3limit.Middleware(l, nil)
}

func TestMain(m *testing.M) {
	fibertest.Main(m, func(addr string, limiter *core.Limiter) error {
		app := fiber.New()
		app.Get("/", fiber3limit.Middleware(limiter), func(c fiber.Ctx) error { return c.JSON(os.Getpid()) })
		return app.Listen(addr, fiber.ListenConfig{EnablePrefork: true, DisableStartupMessage: true})
	})
}

func TestPrefork(t *testing.T) { fibertest.Prefork(t) }

func TestStreamedBodies(t *testing.T) {
	fibertest.Streams(t, func(t *testing.T, app fibertest.App) string {
		f := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: app.BodyLimit})
		f.Use(func(c fiber.Ctx) error {
			if app.Before != nil {
				app.Before(streamCtx{c})
			}
			return c.Next()
		})
		f.All(app.Path, fiber3limit.Middleware(app.Limiter), func(c fiber.Ctx) error { return app.Handler(streamCtx{c}) })
		return listen(t, f)
	})
}

type streamCtx struct{ c fiber.Ctx }

func (s streamCtx) Get(header string) string { return s.c.Get(header) }
func (s streamCtx) Param(name string) string { return s.c.Params(name) }
func (s streamCtx) Body() []byte             { return s.c.Body() }
func (s streamCtx) Stream() io.Reader        { return s.c.RequestCtx().RequestBodyStream() }
func (s streamCtx) Send(body []byte) error   { return s.c.Send(body) }
func (s streamCtx) CloseConnection()         { s.c.RequestCtx().SetConnectionClose() }

// Fiber's middleware for timeouts answers while the handler still runs. The limiter learns
// the answer, and the handler keeps its decision.
func TestAHandlerThatRunsOnAfterATimeoutKeepsItsDecision(t *testing.T) {
	l, next := outcomesOf(t)
	release, read := make(chan struct{}), make(chan string, 1)
	app := fiber.New()
	app.Get("/", fiber3limit.Middleware(l, fiber3limit.ExposeDecision()), timeout.New(func(c fiber.Ctx) error {
		<-release
		d, found := fiber3limit.DecisionFrom(c)
		if found {
			read <- d.Rule()
		} else {
			read <- "no decision"
		}
		return nil
	}, timeout.Config{Timeout: time.Millisecond}))
	app.Get("/other", fiber3limit.Middleware(newLimiter(t, 100, 0)), func(c fiber.Ctx) error { return c.SendString("ok") })
	get := func(path string, want int) {
		t.Helper()
		resp, err := app.Test(httptest.NewRequest(http.MethodGet, path, http.NoBody), untimed)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	get("/", http.StatusRequestTimeout)
	if o := next(); o.Status != http.StatusRequestTimeout || o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
	for range 5 {
		get("/other", http.StatusOK)
	}
	close(release)
	if got := <-read; got != "r" {
		t.Errorf("the handler reads the decision of rule %q", got)
	}
}
