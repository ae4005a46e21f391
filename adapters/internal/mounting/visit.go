package mounting

import (
	"hash/maphash"
	"slices"

	"github.com/floodgate-go/floodgate/core"
)

// Visit notes, in what a framework keeps for a request, that a checker has seen
// it, and what it decided. Every allowed request allocates one, so it is no larger
// than it must be.
type Visit struct {
	Place    *Place
	Decision core.Decision
	Origin   *Origin // nil if Place.Compares is false
	Before   *Visit  // nil: the first
}

// Origin is what a request came as: what a visit is compared by if the request
// comes back.
type Origin struct {
	Target Target
	Route  string // that the router had matched, "" if none
}

// NewVisit returns a visit of a request that p's checker has decided on. If its
// Origin is not nil, it is empty and the adapter must fill it in.
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

// Key is the name under which frameworks whose keys are strings keep the last
// Visit. They hash it with each request: it is short.
const Key = "floodgate.visit"

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

// Of returns the last visit of p's checker among v and those before it, nil if
// there is none.
func (v *Visit) Of(p *Place) *Visit {
	for v != nil && v.Place != p && v.Place.Checker != p.Checker {
		v = v.Before
	}
	return v
}

// Last returns the decision that a handler reads: the last one, without those of
// checkers that had nothing to add when the request came back to them.
func (v *Visit) Last() (core.Decision, bool) {
	for v != nil && v.addsNothing() {
		v = v.Before
	}
	if v == nil {
		return core.Decision{}, false
	}
	return v.Decision, true
}

// All returns the decisions on a request, the first one first, without those of
// checkers that had nothing to add when the request came back to them.
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

// addsNothing reports whether the checker has charged nothing, and has decided on
// the request before.
func (v *Visit) addsNothing() bool { return chargedNothing(&v.Decision) && v.Before.Of(v.Place) != nil }
