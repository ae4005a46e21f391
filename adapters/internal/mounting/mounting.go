// Package mounting has what all adapters need to know of a checker that they
// have mounted, and of the requests that it has decided on.
package mounting

import (
	"fmt"
	"reflect"

	"github.com/floodgate-go/floodgate/core"
)

// Place is a place in which an adapter has put a checker.
type Place struct {
	Checker core.Checker
	again   rechecker // the checker, if it is one
}

// rechecker is a checker whose decision depends on the method and the path of a
// request: see core.Checker.
type rechecker interface {
	core.Checker
	Recheck(r core.Request, before core.Decision) core.Decision
}

// NewPlace returns a place for c. It panics if c is nil, a nil pointer, or of a type
// whose values cannot be compared: adapters compare checkers to recognise them.
func NewPlace(adapter string, c core.Checker) Place {
	v := reflect.ValueOf(c)
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		panic(fmt.Errorf("%s: Middleware: the checker is nil (%T)", adapter, c))
	case !v.Comparable():
		panic(fmt.Errorf("%s: Middleware: a checker of type %T cannot be compared: use a pointer", adapter, c))
	}
	again, _ := c.(rechecker)
	return Place{Checker: c, again: again}
}

// Compares reports whether the checker decides again if a request that it has
// decided on comes back with another method or path. Only then has a visit an Origin.
func (p *Place) Compares(d *core.Decision) bool { return p.again != nil || chargedNothing(d) }

// Check has the checker decide on a request that it has decided on before. seen is
// its last visit, o what the request comes as now. asked is false if there is nothing to
// decide: the checker has decided on this method, path and route, or it counts a
// request once, whatever becomes of these.
func (p *Place) Check(seen *Visit, r core.Request, o Origin) (d core.Decision, asked bool) {
	switch {
	case seen.Origin == nil:
		return d, false
	case p.again != nil && *seen.Origin != o:
		return p.again.Recheck(r, seen.Decision), true
	case p.again == nil && seen.Origin.Target != o.Target:
		return p.Checker.Check(r), true
	}
	return d, false
}

func chargedNothing(d *core.Decision) bool {
	return d.Reason == core.ReasonSkipped || d.Reason == core.ReasonNoRule
}
