package ginlimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
	"github.com/floodgate-go/floodgate/core"
)

// The handlers behind one that denies the request do not run.
func TestADenialEndsTheChain(t *testing.T) {
	l := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ran := 0
	e := gin.New()
	e.GET("/", func(g *gin.Context) {
		d, err := l.Take(g.Request.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		if err != nil {
			t.Error(err)
		}
		if !d.Allowed {
			ginlimit.Deny(g, d)
		}
	}, func(*gin.Context) { ran++ })
	for _, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
	if ran != 1 {
		t.Errorf("the next handler ran %d times, want 1", ran)
	}
}
