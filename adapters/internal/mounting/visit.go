package mounting

import (
	"hash/maphash"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// Visit is a decision of a checker on a request. Frameworks store it with the request.
// Each allowed request allocates a Visit, so that it must be small.
type Visit struct {
	Place    *Place
	Decision core.Decision
	Origin   *Origin // nil if Place.Compares returns false
	Before   *Visit  // the visit before, or nil
}

// Origin is the method, path and route that a request had at a visit.
type Origin struct {
	Target Target
	Route  string // the pattern that the router had matched, or ""
}

// NewVisit returns a visit with a decision of p's checker. If the visit's Origin is not
// nil, the adapter must set its fields.
func (p *Place) NewVisit(d *core.Decision, before *Visit) *Visit {
	if !p.Compares(d) {
		return &Visit{Place: p, Decision: *d, Before: before}
	}
	v := &struct { // one allocation
		visit  Visit
		origin Origin
	}{visit: Visit{Place: p, Decision: *d, Before: before}}
	v.visit.Origin = &v.origin
	return &v.visit
}

// Key is the name under which frameworks with string keys store the last Visit. It is
// short, because frameworks hash it for each request.
const Key = "floodgate.visit"

// Target is a hash of a request's method and path. Two requests have the same Target if
// their methods and paths are equal, and otherwise with a probability of 1 in 2^64. A
// client cannot find such a pair, because each process has its own seed. A Visit has a
// Target in place of the texts, because a copy of the texts would allocate.
type Target uint64

var seed = maphash.MakeSeed()

// TargetOf returns the Target of a method and a path. path is decoded, escaped is the path
// as the client wrote it, or "". TargetOf does not keep the texts.
func TargetOf(method, path, escaped string) Target {
	const odd = 0x9e3779b97f4a7c15 // so that texts in another order have another hash
	sum := maphash.String(seed, method)
	sum = sum*odd + maphash.String(seed, path)
	if escaped != "" { // nearly all requests of net/http have none
		sum = sum*odd + maphash.String(seed, escaped)
	}
	return Target(sum)
}

// Of returns the last visit of p's checker among v and the visits before it, or nil if
// there is none.
func (v *Visit) Of(p *Place) *Visit {
	for v != nil && v.Place != p && v.Place.Checker != p.Checker {
		v = v.Before
	}
	return v
}

// Last returns the last decision among v and the visits before it. It leaves out a
// decision that charged nothing if the same checker had decided on the request before.
func (v *Visit) Last() (core.Decision, bool) {
	for v != nil && v.addsNothing() {
		v = v.Before
	}
	if v == nil {
		return core.Decision{}, false
	}
	return v.Decision, true
}

// All returns the decisions of v and the visits before it, in the order in which they were
// made. It leaves out the decisions that Last leaves out.
func (v *Visit) All() []core.Decision {
	var all []core.Decision
	for ; v != nil; v = v.Before {
		if !v.addsNothing() {
			all = append(all, v.Decision)
		}
	}
	slices.Reverse(all)
	return all
}

// addsNothing reports whether the decision charged nothing and the same checker had decided
// on the request before.
func (v *Visit) addsNothing() bool { return chargedNothing(&v.Decision) && v.Before.Of(v.Place) != nil }
