package echo5limit

import (
	"github.com/labstack/echo/v5"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. The handler returns its result, which is nil.
func Refuse(e *echo.Context, d core.Decision) error {
	httprequest.Refuse(e.Response(), e.Request(), &d, d.Denial(request{e}), nil)
	return nil
}
