// Package rpc has what the adapters of gRPC and Connect share: the outcome of a call by its code,
// the denial of a call, and the decisions on a call and its messages. It knows neither framework. A
// program of the one does not compile the other.
package rpc

import (
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
)

// Call is a call that one limiter has allowed. An adapter stores it in the context that the handler
// gets. All methods may be called concurrently. Last and SetCost may be called on nil.
type Call struct {
	checker core.Checker
	outer   *Call // of the limiter before, or nil

	mu       sync.Mutex
	decision core.Decision
	request  core.Request // that the decision is on, if it needs an outcome
	ended    bool
	outcome  core.Outcome // after the end
}

// Enter returns a call that the checker has allowed with d. outer is the Call of the limiter
// before, or nil. The adapter calls End when the call has ended.
func Enter(by core.Checker, r core.Request, d core.Decision, outer *Call) *Call {
	c := &Call{checker: by, outer: outer, decision: d}
	if d.NeedsOutcome() {
		c.request = r
	}
	return c
}

// Pending returns a call on which the checker will decide later: see Next.
func Pending(by core.Checker) *Call { return &Call{checker: by} }

// Next makes d, which has allowed r, the decision of the call. If the call has ended meanwhile,
// Next settles d at once.
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
		c.checker.Settle(r, d, o)
	}
}

// Settle ends the decision on the call, or on the message that the handler works on.
func (c *Call) Settle(o core.Outcome) {
	c.mu.Lock()
	d, r := c.decision, c.request
	c.request = nil
	c.mu.Unlock()
	if r != nil {
		c.checker.Settle(r, d, o)
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

// Last returns the decision of the innermost limiter, and whether there is one.
func (c *Call) Last() (core.Decision, bool) {
	if c == nil {
		return core.Decision{}, false
	}
	return c.last(), true
}

// SetCost sets the actual cost of the call, or of the message that the handler works on, in the
// decisions of all limiters: see core.Decision.SetCost.
func (c *Call) SetCost(cost int64) bool {
	said := false
	for ; c != nil; c = c.outer {
		said = c.last().SetCost(cost) || said
	}
	return said
}

// Messages counts the messages of a stream that the client sends. The first message is counted with
// the stream. Only one goroutine receives at a time.
type Messages struct {
	Call   *Call
	later  bool                  // a message has been received
	denied atomic.Pointer[error] // the error of a message that was denied
}

// Receive receives a message, and counts it as r. deny returns the error of a message that is
// denied, which every later call of Receive returns too.
func (m *Messages) Receive(receive func() error, r core.Request, deny func(*core.Decision) error) error {
	if denied := m.denied.Load(); denied != nil {
		return *denied
	}
	if err := receive(); err != nil {
		return err
	}
	if !m.later {
		m.later = true
		return nil
	}
	if m.Call.NeedsOutcome() {
		m.Call.Settle(End{}.Outcome())
	}
	d := m.Call.checker.Check(r)
	if d.Allowed {
		m.Call.Next(r, d)
		return nil
	}
	err := deny(&d)
	m.denied.Store(&err)
	return err
}

// Err returns the error with which the stream ends: that of a message that was denied, or else the
// handler's.
func (m *Messages) Err(handler error) error {
	if denied := m.denied.Load(); denied != nil {
		return *denied
	}
	return handler
}
