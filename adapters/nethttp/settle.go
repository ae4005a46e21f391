package httplimit

import (
	"net/http"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// serveAndSettle runs the handler and passes the outcome of the request to the checker.
// It does not recover a panic of the handler, so that the panic keeps its stack.
func (h *handler) serveAndSettle(w http.ResponseWriter, r *http.Request, d *core.Decision) {
	watcher := httprequest.NewWatcher(r.Context(), d)
	panicked := true
	defer func() {
		o := watcher.Outcome(r.Context(), panicked, nil, w.Header().Get)
		h.checker.Settle(httprequest.Request{HTTP: r}, watcher.Decision, o)
	}()
	h.next.ServeHTTP(watcher.Wrap(w), r)
	panicked = false
}
