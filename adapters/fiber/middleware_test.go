//go:build unix

package fiberlimit_test

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

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// The body does not reach a handler. The package comment describes this.
func TestAClientThatWaitsForContinueIsDeniedAfterItsBody(t *testing.T) {
	app := newFiber(false, false)
	app.Post("/", fiberlimit.PerIP(0, time.Minute), func(*fiber.Ctx) error {
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

// A handler that closes the connection without a response has not logged anybody in.
func TestAConnectionThatTheHandlerDropsCountsAsCanceled(t *testing.T) {
	for name, row := range map[string]struct {
		handler fiber.Handler
		status  int
	}{
		"the connection": {func(c *fiber.Ctx) error { return c.Context().Conn().Close() }, core.StatusCanceled},
		"an open one":    {func(*fiber.Ctx) error { return nil }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			l, next := outcomesOf(t)
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Get("/", fiberlimit.Middleware(l), row.handler)
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
		answer func(*fiber.Ctx, error) error
		status int
		body   string
	}{
		"without a word":        {func(*fiber.Ctx, error) error { return errors.New("no template") }, 500, "Internal Server Error"},
		"with its own error":    {func(_ *fiber.Ctx, err error) error { return err }, 500, "Internal Server Error"},
		"after a success":       {func(c *fiber.Ctx, err error) error { _ = c.SendString("welcome"); return err }, 500, "welcome"},
		"and one that does not": {func(c *fiber.Ctx, _ error) error { return c.Status(401).SendString("no") }, 401, "no"},
	} {
		for _, limited := range []bool{true, false} {
			l, next := outcomesOf(t)
			app := fiber.New(fiber.Config{DisableStartupMessage: true, ErrorHandler: row.answer})
			if limited {
				app.Use(fiberlimit.Middleware(l))
			}
			app.Get("/", func(*fiber.Ctx) error { return wrong })
			resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody), -1)
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
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", fiberlimit.Middleware(l), func(c *fiber.Ctx) error {
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
		app.Post("/", fiberlimit.Middleware(l), func(*fiber.Ctx) error { return nil })
		var got []int
		for _, name := range []string{"alice", "alice", "bob"} {
			body := "--XX\r\nContent-Disposition: form-data; name=\"username\"\r\n\r\n" + name + "\r\n" +
				"--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na--XXb\r\n--XX--\r\n"
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "multipart/form-data; boundary=XX")
			resp, err := app.Test(r, -1)
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
		const want = "fiberlimit: an option is nil: write one such as fiberlimit.OnDenied(f), or none"
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %s, want %s", got, want)
		}
	}()
	fiberlimit.Middleware(l, nil)
}

func TestMain(m *testing.M) {
	fibertest.Main(m, func(addr string, limiter *core.Limiter) error {
		app := fiber.New(fiber.Config{Prefork: true, DisableStartupMessage: true})
		app.Get("/", fiberlimit.Middleware(limiter), func(c *fiber.Ctx) error { return c.JSON(os.Getpid()) })
		return app.Listen(addr)
	})
}

func TestPrefork(t *testing.T) { fibertest.Prefork(t) }

func TestStreamedBodies(t *testing.T) {
	fibertest.Streams(t, func(t *testing.T, app fibertest.App) string {
		f := fiber.New(fiber.Config{DisableStartupMessage: true, StreamRequestBody: true, BodyLimit: app.BodyLimit})
		f.Use(func(c *fiber.Ctx) error {
			if app.Before != nil {
				app.Before(streamCtx{c})
			}
			return c.Next()
		})
		f.All(app.Path, fiberlimit.Middleware(app.Limiter), func(c *fiber.Ctx) error { return app.Handler(streamCtx{c}) })
		return listen(t, f)
	})
}

type streamCtx struct{ c *fiber.Ctx }

func (s streamCtx) Get(header string) string { return s.c.Get(header) }
func (s streamCtx) Param(name string) string { return s.c.Params(name) }
func (s streamCtx) Body() []byte             { return s.c.Body() }
func (s streamCtx) Stream() io.Reader        { return s.c.Context().RequestBodyStream() }
func (s streamCtx) Send(body []byte) error   { return s.c.Send(body) }
func (s streamCtx) CloseConnection()         { s.c.Context().SetConnectionClose() }
