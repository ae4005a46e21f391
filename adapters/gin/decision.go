package ginlimit

import (
	"github.com/gin-gonic/gin"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// serving has the decisions on the requests whose handlers are running.
var serving httprequest.Serving

// exposed returns the last visit that [ExposeDecision] has stored.
func exposed(g *gin.Context) *mounting.Visit {
	value, _ := g.Get(mounting.Key)
	v, _ := value.(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
//
// DecisionFrom finds the decision while the handlers behind the limiter run, also if g is a
// copy of the context. After that, it finds the decision only with the option
// [ExposeDecision].
func DecisionFrom(g *gin.Context) (core.Decision, bool) {
	if d, found := serving.Last(g.Request, g); found {
		return d, true
	}
	return exposed(g).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided. It finds them as long as [DecisionFrom] does.
func DecisionsFrom(g *gin.Context) []core.Decision {
	if all := serving.All(g.Request, g); len(all) > 0 {
		return all
	}
	return exposed(g).All()
}
