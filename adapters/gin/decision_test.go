package ginlimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlimit "github.com/floodgate-go/floodgate/adapters/gin"
)

// A test of a handler makes such a context.
func TestAContextWithoutALimiterHasNoDecision(t *testing.T) {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	if d, found := ginlimit.DecisionFrom(c); found || d.Allowed || ginlimit.SetCost(c, 1) {
		t.Errorf("found %v", d)
	}
}
