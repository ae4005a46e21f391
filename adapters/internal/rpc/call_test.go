package rpc

import (
	"context"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
)

// settling is a limiter that records what became of its decisions. Each call has an outcome.
type settling struct {
	*core.Limiter
	outcomes []core.Outcome
}

func newSettling(t *testing.T, limits ...core.Limit) *settling {
	t.Helper()
	s := &settling{}
	s.Limiter = floodgatetest.NewLimiter(t, floodgatetest.NewClock(), core.Config{Rules: []core.Rule{{
		Name: "r", Key: keyfuncs.Static(""), Limits: limits, Cost: func(core.Request) (int64, error) { return 1, nil },
		Counts: func(core.Request, core.Outcome) bool { return true },
	}}})
	return s
}

func (s *settling) Settle(r core.Request, d core.Decision, o core.Outcome) {
	s.outcomes = append(s.outcomes, o)
	s.Limiter.Settle(r, d, o)
}

func (s *settling) statuses() (all []int) {
	for _, o := range s.outcomes {
		all = append(all, o.Status)
	}
	return all
}

func enter(s *settling, outer *Call) *Call {
	r := floodgatetest.NewRequest("POST", "/a.B/C")
	return Enter(s, r, s.Check(r), outer)
}

func equal(t *testing.T, got []int, want ...int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestACallIsSettledOnce(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	if !c.NeedsOutcome() {
		t.Fatal("there is nothing to settle")
	}
	c.Settle(End{}.Outcome())
	c.Settle(End{Code: Internal}.Outcome())
	c.End(End{Code: NotFound}.Outcome())
	c.End(End{Code: Aborted}.Outcome())
	if equal(t, s.statuses(), 200); c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
}

// A message that is decided on after the end of its stream has the outcome of the stream.
func TestMessagesOfACall(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	r := floodgatetest.NewRequest("POST", "/a.B/C")
	c.Settle(End{}.Outcome())
	second := s.Check(r)
	c.Next(r, second)
	if d, ok := c.Last(); !ok || d.Remaining != second.Remaining {
		t.Errorf("the last decision is %v, want %v", d, second)
	}
	c.End(End{Code: NotFound}.Outcome())
	c.Next(r, s.Check(r))
	if equal(t, s.statuses(), 200, 404, 404); c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
	if d, _ := c.Last(); d.Remaining != second.Remaining {
		t.Errorf("after the end, the last decision is %v, want %v", d, second)
	}
}

// A decision that needs no outcome replaces one that did.
func TestAMessageThatNeedsNoOutcome(t *testing.T) {
	s := newSettling(t, core.PerHour(9))
	c := enter(s, nil)
	c.Settle(End{}.Outcome())
	c.Next(floodgatetest.NewRequest("POST", "/a.B/C"), core.Decision{Allowed: true})
	if c.NeedsOutcome() {
		t.Error("there is something to settle")
	}
	c.End(End{}.Outcome())
	equal(t, s.statuses(), 200)
}

func TestTheDecisionOfACallIsTheInnermost(t *testing.T) {
	var none *Call
	if _, ok := none.Last(); ok || none.SetCost(1) {
		t.Error("no call has a decision")
	}
	a, b := newSettling(t, core.PerHour(5)), newSettling(t, core.PerHour(9))
	if d, ok := enter(b, enter(a, nil)).Last(); !ok || d.Limit().Quota != 9 {
		t.Errorf("%v, %t", d, ok)
	}
}

// The cost of a call concerns all its limiters, also those before and after one that has no use for it.
func TestCostOfACall(t *testing.T) {
	a, b := newSettling(t, core.PerHour(9)), newSettling(t, core.PerHour(9))
	useless := func(outer *Call) *Call {
		return Enter(b, floodgatetest.NewRequest("POST", "/a.B/C"), core.Decision{Allowed: true}, outer)
	}
	c := enter(a, useless(nil))
	c = enter(b, c)
	c = useless(c)
	if !c.SetCost(4) {
		t.Fatal("the cost concerns no rule")
	}
	for ; c != nil; c = c.outer {
		c.End(End{}.Outcome())
	}
	for _, s := range []*settling{a, b} {
		d, err := s.Peek(context.Background(), 0, core.Hit{Rule: "r"})
		if err != nil || d.Remaining != 5 {
			t.Errorf("%v, %v; want 5 hits left", d, err)
		}
	}
}
