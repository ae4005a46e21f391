package mounting

import (
	"hash/maphash"

	"github.com/floodgate-go/floodgate/core"
)

// Visit notes, in what a framework keeps for a request, that a checker has seen
// it, and what it decided.
type Visit struct {
	Checker  core.Checker
	Decision core.Decision
	Target   Target
	Route    string // that the router had matched, "" if none
	Before   *Visit // nil: the first
}

// Key is the name under which frameworks whose keys are strings keep the last
// Visit.
const Key = "github.com/floodgate-go/floodgate.visit"

// Target stands for a request's method and path. Two that are equal are of the
// same method and path, but for one pair in 2^64, which no client can find: the
// seed is the process's own. A Target is kept in place of the texts because a
// copy of these would be an allocation for each request.
type Target uint64

var seed = maphash.MakeSeed()

// TargetOf returns the Target of a method and a path, decoded and as the client
// wrote it. It keeps none of the texts.
func TargetOf(method, path, escaped string) Target {
	const odd = 0x9e3779b97f4a7c15 // so that no two texts can change places
	sum := maphash.String(seed, method)
	sum = sum*odd + maphash.String(seed, path)
	if escaped != "" { // as in nearly all requests of net/http
		sum = sum*odd + maphash.String(seed, escaped)
	}
	return Target(sum)
}

// Check has c decide on a request whose last visit is v. asked is false if
// there is nothing to decide: c has decided on this method, path and route, or it
// counts a request once, whatever becomes of these.
func (v *Visit) Check(c core.Checker, r core.Request, t Target) (d core.Decision, asked bool) {
	seen := v.of(c)
	if seen == nil {
		return c.Check(r), true
	}
	if again, ok := c.(core.Rechecker); ok {
		if seen.Target == t && seen.Route == r.Route() {
			return d, false
		}
		return again.Recheck(r, seen.Decision), true
	}
	if seen.Target != t && seen.chargedNothing() {
		return c.Check(r), true
	}
	return d, false
}

// of returns the last visit of c, nil if there is none.
func (v *Visit) of(c core.Checker) *Visit {
	for v != nil && v.Checker != c {
		v = v.Before
	}
	return v
}

func (v *Visit) chargedNothing() bool {
	return v.Decision.Reason == core.Skipped || v.Decision.Reason == core.NoRule
}

// Last returns the decision that a handler reads: the last one, without those of
// checkers that had nothing to add when the request came back to them.
func (v *Visit) Last() (core.Decision, bool) {
	for v != nil && v.chargedNothing() && v.Before.of(v.Checker) != nil {
		v = v.Before
	}
	if v == nil {
		return core.Decision{}, false
	}
	return v.Decision, true
}
