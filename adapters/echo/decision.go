package echolimit

import (
	"reflect"

	"github.com/labstack/echo/v4"

	"github.com/floodgate-go/floodgate/adapters/internal/httprequest"
	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// serving has the decisions on the requests whose handlers are running.
var serving httprequest.Serving

// ownType is the type of Echo's own contexts.
var ownType = reflect.TypeOf(echo.New().NewContext(nil, nil))

// own returns e if it is Echo's own context, and nil if it is one that a middleware has put
// around it.
func own(e echo.Context) any {
	if reflect.TypeOf(e) == ownType {
		return e
	}
	return nil
}

// exposed returns the last visit that [ExposeDecision] has stored.
func exposed(e echo.Context) *mounting.Visit {
	v, _ := e.Get(mounting.Key).(*mounting.Visit)
	return v
}

// DecisionFrom returns the decision with which a limiter has allowed the request. If
// several limiters have allowed it, it is the decision of the last one. The bool is false
// if no limiter has allowed the request.
//
// DecisionFrom finds the decision while the handlers behind the limiter run, and after that
// only with the option [ExposeDecision]. If a goroutine outlives the handlers, pass it the
// decision and not e, because Echo reuses e.
func DecisionFrom(e echo.Context) (core.Decision, bool) {
	if d, found := serving.Last(e.Request(), own(e)); found {
		return d, true
	}
	return exposed(e).Last()
}

// DecisionsFrom returns the decisions of all limiters that have allowed the request, in
// the order in which they decided. It finds them as long as [DecisionFrom] does.
func DecisionsFrom(e echo.Context) []core.Decision {
	if all := serving.All(e.Request(), own(e)); len(all) > 0 {
		return all
	}
	return exposed(e).All()
}
