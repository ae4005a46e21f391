package echolimit

import (
	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handler and passes the outcome of the request to the checker. If
// the handler returns an error, nextAndSettle first passes the error to the application's
// HTTPErrorHandler, because the response is not known before that. It also returns the
// error, for the middlewares before the limiter. It does not recover a panic, so that the
// panic keeps its stack.
func nextAndSettle(r *request, c core.Checker, d core.Decision, next echo.HandlerFunc) (err error) {
	watcher, response := httprequest.NewWatcher(r.Context(), &d), r.c.Response()
	writer := response.Writer
	response.Writer = watcher.Wrap(writer)
	panicked := true
	defer func() {
		response.Writer = writer
		c.Settle(r, d, watcher.Outcome(r.Context(), panicked, err, response.Header().Get))
	}()
	if err = next(r.c); err != nil {
		r.c.Error(err)
	}
	panicked = false
	return err
}
