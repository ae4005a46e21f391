package fiberlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/valyala/fasthttp"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// outcomesOf returns a limiter and a function that returns the next outcome that it gets.
func outcomesOf(t *testing.T) (l *core.Limiter, next func() core.Outcome) {
	t.Helper()
	learnt := make(chan core.Outcome, 1)
	l, err := core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1000)},
		Counts: func(_ core.Request, o core.Outcome) bool {
			learnt <- o
			return true
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return l, func() core.Outcome {
		t.Helper()
		select {
		case o := <-learnt:
			return o
		case <-time.After(20 * time.Second):
			t.Fatal("the limiter was not told the outcome")
			return core.Outcome{}
		}
	}
}

func TestWhichEndsOfAContextCountAsCanceled(t *testing.T) {
	ended := func(c *fiber.Ctx) {
		ctx, cancel := context.WithDeadline(c.UserContext(), time.Unix(0, 0))
		cancel()
		c.SetUserContext(ctx)
	}
	for _, row := range []struct {
		name    string
		outside fiber.Handler
		handler fiber.Handler
		status  int
	}{
		{"a deadline behind the limiter, nothing written", nil, func(c *fiber.Ctx) error {
			ended(c)
			return nil
		}, core.StatusCanceled},
		{"a deadline behind the limiter, a failure", nil, func(c *fiber.Ctx) error {
			ended(c)
			return c.SendStatus(http.StatusUnauthorized)
		}, http.StatusUnauthorized},
		{"a deadline behind the limiter, a failure without a body", nil, func(c *fiber.Ctx) error {
			ended(c)
			c.Status(http.StatusUnauthorized)
			return nil
		}, http.StatusUnauthorized},
		{"a deadline behind the limiter, a stream", nil, func(c *fiber.Ctx) error {
			ended(c)
			return c.SendStream(strings.NewReader("welcome"))
		}, http.StatusOK},
		{"a deadline behind the limiter, a hijack", nil, func(c *fiber.Ctx) error {
			ended(c)
			c.Context().Hijack(func(net.Conn) {})
			return nil
		}, http.StatusSwitchingProtocols},
		{"a deadline behind the limiter, a success", nil, func(c *fiber.Ctx) error {
			ended(c)
			return c.SendString("welcome")
		}, http.StatusOK},
		{"Fiber's own middleware for timeouts", nil, timeout.NewWithContext(func(c *fiber.Ctx) error {
			<-c.UserContext().Done()
			return c.UserContext().Err()
		}, time.Millisecond), http.StatusRequestTimeout},
		{"a context behind the limiter that is cancelled when the handler returns", nil, func(c *fiber.Ctx) error {
			ctx, cancel := context.WithCancel(c.UserContext())
			defer cancel()
			c.SetUserContext(ctx)
			return nil
		}, http.StatusOK},
		{"a context before the limiter that has ended, a success", func(c *fiber.Ctx) error {
			ctx, cancel := context.WithCancel(c.UserContext())
			defer cancel()
			c.SetUserContext(ctx)
			c.Locals("cancel", cancel)
			return c.Next()
		}, func(c *fiber.Ctx) error {
			c.Locals("cancel").(context.CancelFunc)()
			return c.SendString("welcome")
		}, core.StatusCanceled},
		{"an error of a context, of which the error handler writes nothing", nil, func(*fiber.Ctx) error {
			return fmt.Errorf("database: %w", context.Canceled)
		}, core.StatusCanceled},
		{"an error, of which the error handler writes a failure", nil, func(*fiber.Ctx) error { return errors.New("wrong password") }, http.StatusUnauthorized},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, next := outcomesOf(t)
			app := fiber.New(fiber.Config{ErrorHandler: func(c *fiber.Ctx, err error) error {
				var e *fiber.Error
				switch {
				case errors.Is(err, context.Canceled):
					return nil
				case errors.As(err, &e):
					return c.SendStatus(e.Code)
				default:
					return c.SendStatus(http.StatusUnauthorized)
				}
			}})
			if row.outside != nil {
				app.Use(row.outside)
			}
			app.Post("/", fiberlimit.Middleware(l), row.handler)
			resp, err := app.Test(httptest.NewRequest(http.MethodPost, "/", http.NoBody), -1)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if o := next(); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
				t.Errorf("the limiter learnt %+v, want status %d", o, row.status)
			}
		})
	}
}

// A handler that stops because the server shuts down has not logged anybody in.
func TestAnEmptyResponseDuringAShutdownCountsAsCanceled(t *testing.T) {
	for name, row := range map[string]struct {
		write  func(c *fiber.Ctx) error
		status int
	}{
		"nothing written": {func(*fiber.Ctx) error { return nil }, core.StatusCanceled},
		"a success":       {func(c *fiber.Ctx) error { return c.SendString("welcome") }, http.StatusOK},
	} {
		l, next := outcomesOf(t)
		app := fiber.New(fiber.Config{DisableStartupMessage: true})
		entered := make(chan struct{})
		app.Get("/", fiberlimit.Middleware(l), func(c *fiber.Ctx) error {
			close(entered)
			<-c.Context().Done()
			return row.write(c)
		})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served, answered := make(chan error, 1), make(chan error, 1)
		go func() { served <- app.Listener(ln) }()
		go func() {
			_, _, err := fasthttp.Get(nil, "http://"+ln.Addr().String()+"/")
			answered <- err
		}()
		<-entered
		if err := errors.Join(app.ShutdownWithTimeout(20*time.Second), <-served, <-answered); err != nil {
			t.Error(err)
		}
		if o := next(); o.Status != row.status || o.Canceled != (row.status == core.StatusCanceled) {
			t.Errorf("%s: the limiter learnt %+v", name, o)
		}
	}
}

// Unit tests of handlers use contexts that no server has made.
func TestAContextWithoutAServerIsNotCanceled(t *testing.T) {
	l, next := outcomesOf(t)
	app := fiber.New()
	app.Get("/", fiberlimit.Middleware(l), func(*fiber.Ctx) error { return nil })
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.SetRequestURI("/")
	app.Handler()(ctx)
	if o := next(); o.Status != http.StatusOK || o.Canceled {
		t.Errorf("the limiter learnt %+v", o)
	}
}

// A rule that learns the outcome reads the context that the request had before the handlers: one that a handler has
// set may have ended, or be another's.
func TestTheContextOfAnOutcome(t *testing.T) {
	type key struct{}
	read := make(chan any, 2)
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(1000)},
		Counts: func(r core.Request, _ core.Outcome) bool {
			read <- r.Context().Value(key{})
			return true
		},
	}}}))
	app := fiber.New()
	app.Use(func(c *fiber.Ctx) error {
		c.SetUserContext(context.WithValue(c.UserContext(), key{}, "before"))
		return c.Next()
	}, fiberlimit.Middleware(l))
	app.Get("/", func(c *fiber.Ctx) error {
		c.SetUserContext(context.WithValue(c.UserContext(), key{}, "the handler's"))
		return nil
	})
	resp, err := app.Test(httptest.NewRequest(http.MethodGet, "/", http.NoBody), -1)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := <-read; got != "before" {
		t.Errorf("the rule reads the context with %v", got)
	}
}
