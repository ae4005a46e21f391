package fiberlimit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/gofiber/fiber/v2/middleware/logger"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/gofiber/fiber/v2/middleware/timeout"

	"github.com/floodgate-go/floodgate/adapters/adaptertest"
	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adapter(false)) }

func TestAdapterOfAnApplicationThatStreamsBodies(t *testing.T) { adaptertest.Run(t, adapter(true)) }

func adapter(streams bool) adaptertest.Adapter {
	return adaptertest.Adapter{
		Name:      "fiberlimit",
		Mount:     func(c core.Checker, n int) { fiberlimit.Middleware(c, make([]fiberlimit.Option, n)...) },
		Parameter: ":id",
		Own: func(r core.Request, header string) (string, bool) {
			c, found := fiberlimit.Ctx(r)
			if !found {
				return "", false
			}
			return c.Get(header), true
		},
		LimitsFirst: true,
		Serve:       func(t *testing.T, app adaptertest.App) string { return listen(t, build(app, streams)) },
		PerIP: func(t *testing.T, quota int64, window time.Duration, opts ...keyfuncs.ClientIPOption) string {
			app := newFiber(false, streams)
			app.Get("/", fiberlimit.PerIP(quota, window, opts...), func(*fiber.Ctx) error { return nil })
			return listen(t, app)
		},
		ReadsFirst: true,
		KeepsBody:  true,
		Flushes:    true,
		Hijacks:    true,

		ReturnsErrors: true,
	}
}

func newFiber(answersErrors, streams bool) *fiber.App {
	answer := fiber.DefaultErrorHandler
	if answersErrors {
		answer = answerErrors
	}
	return fiber.New(fiber.Config{
		ErrorHandler:          answer,
		DisableStartupMessage: true,
		StreamRequestBody:     streams,
		ReadBufferSize:        200 << 10, // for the long headers of the table
		RequestMethods:        append(fiber.DefaultMethods, "PROPFIND", "REPORT", "QUERY", "post"),
	})
}

func listen(t *testing.T, app *fiber.App) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- app.Listener(l) }()
	t.Cleanup(func() { fibertest.Shutdown(t, app, done) })
	return l.Addr().String()
}

// build makes a Fiber application.
func build(app adaptertest.App, streams bool) *fiber.App {
	f := newFiber(app.AnswersErrors, streams)
	use(f, surround(app.Outside)...)
	if app.User != "" {
		f.Use(func(c *fiber.Ctx) error {
			c.Locals(adaptertest.UserKey, app.User)
			return c.Next()
		})
	}
	limits, router := append(middleware(app.Limits), surround(app.Inside)...), fiber.Router(f)
	if app.Group != "" {
		router = f.Group(app.Group)
	}
	use(router, limits...)
	for _, route := range app.Routes {
		router.Add(route.Method, route.Pattern, append(middleware(route.Limits), handler(route.Handler))...)
	}
	return f
}

func use(r fiber.Router, hs ...fiber.Handler) {
	for _, h := range hs {
		r.Use(h)
	}
}

func surround(ms []adaptertest.Middleware) (hs []fiber.Handler) {
	for _, m := range ms {
		hs = append(hs, map[adaptertest.Middleware]fiber.Handler{
			adaptertest.Recovery: recover.New(),
			adaptertest.CORS:     cors.New(cors.Config{AllowOrigins: adaptertest.AllowedOrigin}),
			adaptertest.Logging:  logger.New(logger.Config{Output: io.Discard}),

			adaptertest.Deadline:        timeout.NewWithContext((*fiber.Ctx).Next, adaptertest.DeadlineAfter),
			adaptertest.PatientDeadline: timeout.NewWithContext((*fiber.Ctx).Next, adaptertest.PatientAfter),

			adaptertest.Headers: first(func(c *fiber.Ctx) {
				for name, value := range adaptertest.StaleHeaders {
					c.Set(name, value)
				}
			}),
			adaptertest.Copies: first(func(c *fiber.Ctx) {
				c.SetUserContext(context.WithValue(c.UserContext(), adaptertest.Copied, adaptertest.Copied)) //nolint:staticcheck // the key that the table knows
			}),
			adaptertest.ReadsBody:  first(func(c *fiber.Ctx) { _ = c.Body() }),
			adaptertest.ReadsPart:  first(func(c *fiber.Ctx) { _ = c.Body()[:8] }),
			adaptertest.ParsesForm: first(func(c *fiber.Ctx) { _ = c.FormValue("x") }),
		}[m])
	}
	return hs
}

// first calls read before the next handler.
func first(read func(*fiber.Ctx)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		read(c)
		return c.Next()
	}
}

func answerErrors(c *fiber.Ctx, err error) error {
	if adaptertest.Ignored(err) {
		return nil
	}
	if errors.Is(err, adaptertest.ErrWrongPassword) {
		return c.SendStatus(fiber.StatusUnauthorized)
	}
	return fiber.DefaultErrorHandler(c, err)
}

func middleware(limits []adaptertest.Limit) (hs []fiber.Handler) {
	for _, l := range limits {
		var opts []fiberlimit.Option
		if l.Denied != "" {
			opts = append(opts, fiberlimit.OnDenied(func(c *fiber.Ctx, _ core.Decision) error {
				return c.Status(fiber.StatusTeapot).SendString(l.Denied)
			}))
		}
		if l.DeniedError {
			opts = append(opts, fiberlimit.OnDenied(func(*fiber.Ctx, core.Decision) error { return fiber.ErrTeapot }))
		}
		if l.Expose {
			opts = append(opts, fiberlimit.ExposeDecision())
		}
		hs = append(hs, fiberlimit.Middleware(l.Checker, opts...))
	}
	return hs
}

func handler(h adaptertest.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		var status adaptertest.StatusError
		err := h(exchange{c})
		switch {
		case !errors.As(err, &status):
			return err
		case err == status: //nolint:errorlint // not wrapped
			return fiber.NewError(int(status))
		default:
			return fmt.Errorf("wrapped: %w", fiber.NewError(int(status)))
		}
	}
}

// exchange is a request and its response as the table's handlers see them.
type exchange struct{ c *fiber.Ctx }

func (x exchange) Context() context.Context        { return x.c.UserContext() }
func (x exchange) Body() ([]byte, error)           { return x.c.Body(), nil }
func (x exchange) Form(name string) string         { return x.c.FormValue(name) }
func (x exchange) JSON(v any) error                { return x.c.BodyParser(v) }
func (x exchange) Header(name string) string       { return x.c.Get(name) }
func (x exchange) SetHeader(name, value string)    { x.c.Set(name, value) }
func (x exchange) Decision() (core.Decision, bool) { return fiberlimit.DecisionFrom(x.c) }
func (x exchange) PathValue(name string) string    { return x.c.Params(name) }
func (x exchange) SetCost(cost int64) bool         { return fiberlimit.SetCost(x.c, cost) }

func (x exchange) Deny(d core.Decision) error { return fiberlimit.Deny(x.c, d) }

func (x exchange) Respond(status int, body string) error {
	x.c.Status(status)
	x.c.Response().SetBodyString(body)
	return nil
}

// Stream writes parts after the handler has ended: Fiber knows no other way.
func (x exchange) Stream(next func() string) error {
	x.c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		for part := next(); part != ""; part = next() {
			if _, err := w.WriteString(part); err != nil || w.Flush() != nil {
				return
			}
		}
	})
	return nil
}

// Hijack takes over the connection after the handler has ended.
func (x exchange) Hijack(raw string, end <-chan struct{}) error {
	x.c.Context().HijackSetNoResponse(true)
	x.c.Context().Hijack(func(c net.Conn) {
		_, _ = io.WriteString(c, raw)
		if end != nil {
			<-end
		}
	})
	return nil
}

// program serves GET /api.
func program(c core.Checker) (serve func()) {
	f, hs := newFiber(false, false), []fiber.Handler{func(*fiber.Ctx) error { return nil }}
	if c != nil {
		hs = append([]fiber.Handler{fiberlimit.Middleware(c)}, hs...)
	}
	f.Get("/api", hs...)
	return fibertest.Program(f.Handler())
}

func BenchmarkMiddleware(b *testing.B) { adaptertest.Benchmark(b, program) }

// The decision that handlers can read, the core.Request and the text of the address are in
// memory that earlier requests have used.
func TestAllocations(t *testing.T) {
	adaptertest.Allocations{NoHeaders: 0, Headers: 1, Denied: 2, DeniedNoHeaders: 2, InFlight: 5}.Check(t, program)
}
