package ginlimit

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/internal/outcome"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handlers behind the limiter and passes the outcome of the
// request to the checker. It does not recover a panic, so that the panic keeps its stack.
func nextAndSettle(g *gin.Context, c core.Checker, d core.Decision) {
	w := &watched{ResponseWriter: g.Writer, ctx: g.Request.Context(), held: &d}
	g.Writer = w
	panicked, errorsBefore := true, len(g.Errors)
	defer func() {
		g.Writer = w.ResponseWriter
		o := outcome.Response{Status: w.Status(), Ended: w.ended, Panicked: panicked, Header: w.Header().Get}
		switch {
		case w.hijacked:
			o.Status = http.StatusSwitchingProtocols
		case !w.Written():
			// Gin writes the status that a handler has set after all handlers.
			o.Ended = outcome.Ended(w.ctx, g.Request.Context())
			switch {
			case panicked:
				o.Status = 0
			case len(g.Errors) > errorsBefore && o.Status < http.StatusBadRequest:
				o.Status = http.StatusBadRequest // another middleware will write a response: this is no success
			}
		}
		c.Settle(request{g}, d, o.Outcome())
	}()
	g.Next()
	panicked = false
}
