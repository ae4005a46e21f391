package ginlimit_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// A middleware before the limiter writes the response, so that the limiter cannot
// know its status.
func TestAnErrorThatAnotherMiddlewareAnswersIsNoSuccess(t *testing.T) {
	var got []int
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "ip", Key: keyfuncs.Static("k"), Limits: []core.Limit{core.PerMinute(100)},
		Counts: func(_ core.Request, o core.Outcome) bool { got = append(got, o.Status); return true },
	}}}))
	failed := errors.New("failed")
	for name, row := range map[string]struct {
		handler gin.HandlerFunc
		want    int
	}{
		"an error":                            {func(c *gin.Context) { _ = c.Error(failed) }, 400},
		"an error and a status":               {func(c *gin.Context) { _ = c.AbortWithError(http.StatusUnauthorized, failed) }, 401},
		"an error and a status of the server": {func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadGateway, failed) }, 502},
		"an error that is noted for the log":  {func(c *gin.Context) { _ = c.Error(failed); c.String(http.StatusOK, "ok") }, 200},
		"nothing":                             {func(*gin.Context) {}, 200},
		"a status":                            {func(c *gin.Context) { c.Status(http.StatusNoContent) }, 204},
	} {
		got = nil
		e := gin.New()
		e.Use(func(c *gin.Context) { _ = c.Error(errors.New("of before")); c.Next() }, answerErrors)
		e.GET("/", ginlimit.Middleware(limiter), row.handler)
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		if len(got) != 1 || got[0] != row.want {
			t.Errorf("%s: the outcome's status is %v, want %d", name, got, row.want)
		}
	}
}
