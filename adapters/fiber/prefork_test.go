//go:build unix

package fiberlimit_test

import (
	"os"
	"testing"

	"github.com/gofiber/fiber/v2"

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
