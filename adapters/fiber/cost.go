package fiberlimit

import (
	"github.com/gofiber/fiber/v2"

	"github.com/floodgate-go/floodgate/adapters/internal/fasthttprequest"
)

// SetCost says what the request has really cost, in hits, once the handler knows: the tokens
// of an answer, the rows that were read. What the limiters have charged for the request is then
// an estimate. After the handlers have returned, the limiters charge what is missing, or give
// back what is too much. [core.Decision.SetCost] tells which rules that concerns. It returns
// false if it concerns none: no rule, and no limiter's hooks, have a Cost of their own.
//
// The last call counts. SetCost may be called concurrently. A stream is sent after the
// handlers have returned: SetCost returns false in a stream writer, and sets no cost. The
// handler passes the result of [DecisionFrom] to the stream writer, which calls
// [core.Limiter.Adjust] with it.
func SetCost(f *fiber.Ctx, cost int64) bool {
	return fasthttprequest.SetCost(f.Context, cost)
}
