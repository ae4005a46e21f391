package fiber3limit

import (
	"github.com/gofiber/fiber/v3"

	"github.com/floodgate-go/floodgate/core"
)

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. The handler returns its result, which is nil.
func Refuse(f fiber.Ctx, d core.Decision) error {
	major.Refuse(f, f.RequestCtx(), d)
	return nil
}
