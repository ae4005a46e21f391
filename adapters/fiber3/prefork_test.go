//go:build unix

package fiber3limit_test

import (
	"os"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/adapters/internal/fibertest"
	"github.com/floodgate-go/floodgate/core"
)

func TestMain(m *testing.M) {
	fibertest.Main(m, func(addr string, limiter *core.Limiter) error {
		app := fiber.New()
		app.Get("/", fiber3limit.Middleware(limiter), func(c fiber.Ctx) error { return c.JSON(os.Getpid()) })
		return app.Listen(addr, fiber.ListenConfig{EnablePrefork: true, DisableStartupMessage: true})
	})
}

func TestPrefork(t *testing.T) { fibertest.Prefork(t) }
