package readerstest

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/internal/pathtest"
	"github.com/floodgate-go/floodgate/policy"
)

// to gives a request to POST /second.
func to(next func(fiber.Ctx) error) fiber.Handler {
	return func(c fiber.Ctx) error {
		c.Method(http.MethodPost)
		c.Path("/second")
		return next(c)
	}
}

func TestARequestThatIsRoutedAgainIsCountedForItsNewPath(t *testing.T) {
	t.Run("RestartRouting", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			f := fiber.New()
			f.Use(fiber3limit.Middleware(set))
			f.Get("/first", to(fiber.Ctx.RestartRouting))
			f.Post("/second", handler("second"))
			return serve(t, f)
		})
	})
	t.Run("the next route", func(t *testing.T) {
		pathtest.Rerouted(t, func(set *policy.Set) string {
			f := fiber.New()
			f.Use(fiber3limit.Middleware(set), to(fiber.Ctx.Next))
			f.Post("/second", fiber3limit.Middleware(set), handler("second"))
			return serve(t, f)
		})
	})
}

func TestPoliciesThatWaitAndPoliciesByParameter(t *testing.T) {
	pathtest.WaitsByParameter(t, func(set *policy.Set, handle func()) string {
		f, h := fiber.New(), func(fiber.Ctx) error { handle(); return nil }
		f.Get("/tenants/:id", fiber3limit.Middleware(set), h)
		f.Get("/slow", fiber3limit.Middleware(set), h)
		return serve(t, f)
	})
}
