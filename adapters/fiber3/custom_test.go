package fiber3limit_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
)

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
