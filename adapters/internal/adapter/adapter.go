// Package adapter has what the adapters of all frameworks share: the limiter of PerIP, the checks
// of the arguments of Middleware, the decisions that handlers read, and the outcome of a request.
package adapter

import (
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// PerIP returns the limiter of an adapter's PerIP. It panics if an argument is invalid.
func PerIP(quota int64, window time.Duration, opts []keyfuncs.ClientIPOption) *core.Limiter {
	return core.Must(core.New(core.Config{
		Name:  "per-ip",
		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(opts...), Limits: []core.Limit{{Quota: quota, Window: window}}}},
	}))
}

// MustChecker panics if the checker of a Middleware is nil or a nil pointer.
func MustChecker(adapter string, c core.Checker) {
	if nilcheck.IsNil(c) {
		panic(fmt.Errorf("%s: the checker is nil (%T): pass one that is not, such as the limiter that core.New returns", adapter, c))
	}
}

// Apply calls each option of an adapter with to. It panics if one is nil.
func Apply[O any, F ~func(*O)](adapter string, to *O, opts []F) {
	for _, opt := range opts {
		if opt == nil {
			panic(fmt.Errorf("%s: an option is nil: write one such as %s.OnDenied(f), or none", adapter, adapter))
		}
		opt(to)
	}
}

// Exposed is a decision that handlers can find. Adapters store the one of the innermost limiter
// with the request.
type Exposed struct {
	Decision core.Decision
	Outer    *Exposed // of the limiter before, or nil
}

// Key is the name under which frameworks with string keys store an Exposed. It is short, because
// frameworks hash it for each request.
const Key = "floodgate.decision"

// Last returns the decision of the innermost limiter. e may be nil.
func (e *Exposed) Last() (core.Decision, bool) {
	if e == nil {
		return core.Decision{}, false
	}
	return e.Decision, true
}

// SetCost sets the actual cost in the decisions of all limiters: see core.Decision.SetCost. It
// reports whether that concerns one of them. e may be nil.
func (e *Exposed) SetCost(cost int64) bool {
	said := false
	for ; e != nil; e = e.Outer {
		said = e.Decision.SetCost(cost) || said
	}
	return said
}
