package echolimit

import (
	"github.com/labstack/echo/v4"
)

// SetCost says what the request has really cost, in hits, once the handler knows: the tokens
// of an answer, the rows that were read. What the limiters have charged for the request is then
// an estimate. After the handlers have returned, the limiters charge what is missing, or give
// back what is too much. [core.Decision.SetCost] tells which rules that concerns. It returns
// false if it concerns none: no rule that applied has a Cost.
//
// The last call counts. SetCost may be called concurrently.
func SetCost(e echo.Context, cost int64) bool {
	said := false
	for _, d := range DecisionsFrom(e) {
		said = d.SetCost(cost) || said
	}
	return said
}
