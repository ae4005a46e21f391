package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// After the request, the context has the writer that it had before the limiter, also if the handler panics.
func TestTheWriterIsRestored(t *testing.T) {
	counts := func(core.Request, core.Outcome) bool { return true }
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "all", Key: keyfuncs.Static(""), Limits: []core.Limit{core.PerHour(9)}, Counts: counts}}}))
	restored := 0
	e := gin.New()
	e.Use(func(g *gin.Context) {
		before := g.Writer
		defer func() {
			_ = recover()
			if g.Writer == before {
				restored++
			}
		}()
		g.Next()
	}, ginlimit.Middleware(l))
	e.GET("/", func(g *gin.Context) {
		if g.Query("panic") != "" {
			panic("on purpose")
		}
		g.String(http.StatusOK, "yes")
	})
	for i, target := range []string{"/", "/?panic=1"} {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil))
		if restored != i+1 {
			t.Errorf("%s: the context has another writer", target)
		}
	}
}
