package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. It aborts the chain of handlers. The handler writes nothing after it.
func Refuse(g *gin.Context, d core.Decision) {
	g.Abort()
	httprequest.Refuse(g.Writer, g.Request, &d, d.Denial(request{g}), nil)
}
