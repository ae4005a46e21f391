package echo5limit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v5"

	echo5limit "github.com/floodgate-go/floodgate/adapters/echo5"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// Many applications write no response to an error of a context, because they assume that the
// client has gone away. If the context was another one, the client is still there and gets
// 200. That is no success.
func TestAContextErrorThatTheErrorHandlerIgnoresCountsAsCanceled(t *testing.T) {
	for name, row := range map[string]struct {
		err    error
		status int
	}{
		"canceled":          {fmt.Errorf("database: %w", context.Canceled), core.StatusCanceled},
		"deadline exceeded": {context.DeadlineExceeded, core.StatusCanceled},
		"another error":     {errors.New("wrong password"), http.StatusUnauthorized},
		"none":              {nil, http.StatusOK},
	} {
		var learnt core.Outcome
		l := core.Must(core.New(core.Config{Rules: []core.Rule{{
			Name: "r", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(10)},
			Counts: func(_ core.Request, o core.Outcome) bool {
				learnt = o
				return true
			},
		}}}))
		e := newEcho()
		e.HTTPErrorHandler = func(c *echo.Context, err error) {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !committed(c) {
				_ = c.NoContent(http.StatusUnauthorized)
			}
		}
		e.POST("/", func(*echo.Context) error { return row.err }, echo5limit.Middleware(l))
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", http.NoBody))
		if learnt.Status != row.status || learnt.Canceled != (row.status == core.StatusCanceled) {
			t.Errorf("%s: the limiter learnt %+v, want status %d", name, learnt, row.status)
		}
	}
}
