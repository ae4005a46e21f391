// Package mounting records, for all adapters, in which places a checker is mounted and
// which requests it has decided on.
package mounting

import (
	"fmt"
	"reflect"

	"github.com/floodgate-go/floodgate/core"
)

// Place is a place in which an adapter has mounted a checker. It may be used
// concurrently.
type Place struct {
	Checker core.Checker
	again   rechecker // the Checker if it is a rechecker, or nil
}

// rechecker is a checker whose decision depends on the method and the path of a
// request: see core.Checker.
type rechecker interface {
	core.Checker
	Recheck(r core.Request, before core.Decision) core.Decision
}

// NewPlace returns a place for c. It panics if c is nil or a nil pointer. It also panics if
// values of c's type cannot be compared, because adapters compare checkers to recognise
// them.
func NewPlace(adapter string, c core.Checker) Place {
	v := reflect.ValueOf(c)
	switch {
	case !v.IsValid(), v.Kind() == reflect.Pointer && v.IsNil():
		panic(fmt.Errorf("%s: the checker is nil (%T): pass one that is not, such as the limiter that core.New returns", adapter, c))
	case !v.Comparable():
		panic(fmt.Errorf("%s: the checker's type %T cannot be compared: pass a pointer", adapter, c))
	}
	again, _ := c.(rechecker)
	return Place{Checker: c, again: again}
}

// MustOption panics if an option of an adapter is nil.
func MustOption(adapter string, given bool) {
	if !given {
		panic(fmt.Errorf("%s: an option is nil: write one such as %s.OnDenied(f), or none", adapter, adapter))
	}
}

// Compares reports whether the checker decides again on a request if the request comes
// back with another method or path. d is the checker's decision on the request. A visit
// has an Origin only if Compares returns true.
func (p *Place) Compares(d *core.Decision) bool { return p.again != nil || chargedNothing(d) }

// Check makes the checker decide on a request that it has decided on before. seen is the
// checker's last visit, o the method, path and route that the request has now. asked is
// false if there is nothing to decide: the checker has decided on o before, or it counts a
// request once, whatever its method, path and route are.
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
