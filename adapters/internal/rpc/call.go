package rpc

import (
	"sync"

	"github.com/floodgate-go/floodgate/adapters/internal/mounting"
	"github.com/floodgate-go/floodgate/core"
)

// Call is the way of a call through one limiter. An adapter stores it in the context that
// the handler gets. All methods may be called concurrently, and on a nil *Call if they
// only read.
type Call struct {
	place  *mounting.Place
	method string // the full method
	before *Call  // of the limiter before, or nil

	mu       sync.Mutex
	decision core.Decision
	request  core.Request // that the decision is on, if it needs an outcome
	ended    bool
	outcome  core.Outcome // after the end
}

// Met reports whether the place's checker has decided on the call of this method before. A
// call of another method is another call, which an interceptor makes with the context of the
// first one.
func (c *Call) Met(p *mounting.Place, method string) bool {
	for ; c != nil; c = c.before {
		if c.method == method && (c.place == p || c.place.Checker == p.Checker) {
			return true
		}
	}
	return false
}

// Enter returns the call after the place's checker has allowed it with d. before is the
// call that the context has, or nil. The caller calls End in the end.
func Enter(p *mounting.Place, r core.Request, d core.Decision, before *Call) *Call {
	c := &Call{place: p, method: r.Path(), before: before, decision: d}
	if d.NeedsOutcome() {
		c.request = r
	}
	return c
}

// NoSlots is what a stream is refused with if MayCountMessages returns false.
const NoSlots = "PerMessage does not go with a limit of what is in flight: limit streams by an interceptor of its own"

// MayCountMessages reports whether the messages of a stream may count that was allowed with d.
// If d holds a slot of a limit of what is in flight, each message would give the slot up before
// it takes another, and the handler would run on without one. The slot is given back then.
func MayCountMessages(d core.Decision) bool {
	release, held := d.Hold()
	if held {
		release()
	}
	return !held
}

// Pending returns a call on which the place's checker will decide later: see Next.
func Pending(p *mounting.Place, method string, before *Call) *Call {
	return &Call{place: p, method: method, before: before}
}

// Next puts the decision on the next message in the place of the decision before. The
// checker has allowed the message. If the call has ended meanwhile, Next settles the
// decision as the call's.
func (c *Call) Next(r core.Request, d core.Decision) {
	if !d.NeedsOutcome() {
		r = nil
	}
	c.mu.Lock()
	ended, o := c.ended, c.outcome
	if !ended {
		c.decision, c.request = d, r
	}
	c.mu.Unlock()
	if ended && r != nil {
		c.place.Checker.Settle(r, d, o)
	}
}

// Settle ends the decision on the call, or on the message that the handler works on.
func (c *Call) Settle(o core.Outcome) {
	c.mu.Lock()
	d, r := c.decision, c.request
	c.request = nil
	c.mu.Unlock()
	if r != nil {
		c.place.Checker.Settle(r, d, o)
	}
}

// NeedsOutcome reports whether Settle has anything to do.
func (c *Call) NeedsOutcome() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request != nil
}

// End settles what is left, and what Next brings after it.
func (c *Call) End(o core.Outcome) {
	c.mu.Lock()
	c.ended, c.outcome = true, o
	c.mu.Unlock()
	c.Settle(o)
}

func (c *Call) last() core.Decision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decision
}

// Last returns the decision of the last limiter, and whether there is one.
func (c *Call) Last() (core.Decision, bool) {
	if c == nil {
		return core.Decision{}, false
	}
	return c.last(), true
}

// All returns the decisions of all limiters, in the order in which they decided.
func (c *Call) All() []core.Decision {
	if c == nil {
		return nil
	}
	return append(c.before.All(), c.last())
}

// SetCost sets the actual cost of the call, or of the message that the handler works on:
// see core.Decision.SetCost.
func (c *Call) SetCost(cost int64) bool {
	said := false
	for ; c != nil; c = c.before {
		said = c.last().SetCost(cost) || said
	}
	return said
}
