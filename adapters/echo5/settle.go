package echo5limit

import (
	"github.com/labstack/echo/v5"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/core"
)

// nextAndSettle runs the handler and passes the outcome of the request to the checker. If
// the handler returns an error, nextAndSettle first passes the error to the application's
// HTTPErrorHandler, because the response is not known before that. It also returns the
// error, for the middlewares before the limiter. It does not recover a panic, so that the
// panic keeps its stack.
func nextAndSettle(e *echo.Context, c core.Checker, d core.Decision, next echo.HandlerFunc) (err error) {
	r := request{e}
	watcher, response := httprequest.NewWatcher(r.Context(), &d), e.Response()
	e.SetResponse(watcher.Wrap(response))
	panicked := true
	defer func() {
		e.SetResponse(response)
		if inner, unwrapErr := echo.UnwrapResponse(response); unwrapErr == nil && inner.Committed {
			watcher.Missed(inner.Status)
		}
		c.Settle(r, d, watcher.Outcome(r.Context(), panicked, err, response.Header().Get))
	}()
	if err = next(e); err != nil {
		if app := e.Echo(); app != nil {
			app.HTTPErrorHandler(e, err)
		} else { // a context that a test has made
			_, status := echo.ResolveResponseStatus(response, err)
			watcher.Missed(status)
		}
	}
	panicked = false
	return err
}
