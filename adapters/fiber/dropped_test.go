package fiberlimit_test

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"

	fiberlimit "github.com/floodgate-go/floodgate/adapters/fiber"
	"github.com/floodgate-go/floodgate/core"
)

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
