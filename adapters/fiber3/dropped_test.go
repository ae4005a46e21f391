package fiber3limit_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v3"

	fiber3limit "github.com/floodgate-go/floodgate/adapters/fiber3"
	"github.com/floodgate-go/floodgate/core"
)

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
