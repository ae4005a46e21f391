package httplimit

import (
	"net/http"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// Refuse answers a request that a handler denies because of a decision of its own, such as
// that of [core.Limiter.Take]: with the response that the hooks of the decision's limiter make, and with
// its headers, as the middleware answers. The handler writes nothing after it.
func Refuse(w http.ResponseWriter, r *http.Request, d core.Decision) {
	httprequest.Refuse(w, r, &d, d.Denial(httprequest.Request{HTTP: r}), nil)
}
