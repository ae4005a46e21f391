package fiber3limit_test

import (
	"io"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
)

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
