//go:build unix

package fiberlimit_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/timeout"
	"github.com/valyala/fasthttp"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
)

func TestMain(m *testing.M) {
	fibertest.Main(m, func(addr string, limiter *core.Limiter) error {
		app := fiber.New(fiber.Config{Prefork: true, DisableStartupMessage: true})
		app.Get("/", fiberlimit.Middleware(limiter), func(c *fiber.Ctx) error { return c.JSON(os.Getpid()) })
		return app.Listen(addr)
	})
}

func TestPrefork(t *testing.T) { fibertest.Prefork(t) }

func TestFiber(t *testing.T) {
	fibertest.Run(t, fibertest.Fiber{New: newServer, Timeout: func(h func(fibertest.Ctx) error, after time.Duration) func(fibertest.Ctx) error {
		limited := timeout.NewWithContext(func(c *fiber.Ctx) error { return h(ctx{c}) }, after)
		return func(c fibertest.Ctx) error { return limited(c.(ctx).Ctx) }
	}})
}

// ctx has the names of Fiber v3.
type ctx struct{ *fiber.Ctx }

func (c ctx) Context() context.Context         { return c.UserContext() }
func (c ctx) SetContext(to context.Context)    { c.SetUserContext(to) }
func (c ctx) RequestCtx() *fasthttp.RequestCtx { return c.Ctx.Context() }

func newServer(app fibertest.App) fibertest.Server {
	config := fiber.Config{
		DisableStartupMessage: true, StreamRequestBody: app.Streams, BodyLimit: app.BodyLimit, DisablePreParseMultipartForm: app.KeepsForms,
	}
	if app.ErrorHandler != nil {
		config.ErrorHandler = func(c *fiber.Ctx, err error) error { return app.ErrorHandler(ctx{c}, err) }
	}
	f := fiber.New(config)
	if app.Before != nil {
		f.Use(func(c *fiber.Ctx) error { return app.Before(ctx{c}) })
	}
	hs := []fiber.Handler{func(c *fiber.Ctx) error { return app.Handler(ctx{c}) }}
	if app.Limiter != nil {
		hs = append([]fiber.Handler{fiberlimit.Middleware(app.Limiter)}, hs...)
	}
	if app.Path == "" {
		app.Path = "/"
	}
	f.All(app.Path, hs...)
	if app.ErrorHandler != nil { // of an application that is a part of another one
		whole := fiber.New(fiber.Config{DisableStartupMessage: true})
		return whole.Mount("/", f).(*fiber.App)
	}
	return f
}
