package core_test

import (
	"context"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// contexts is a store that keeps in what state the contexts were that it was
// settled with.
type contexts struct {
	core.Store
	core.Bound
	refund, reset []error
}

func (s *contexts) Bind(limiter string, rules []core.StoreRule) (_ core.Bound, err error) {
	s.Bound, err = s.Store.Bind(limiter, rules)
	return s, err
}

func (s *contexts) Refund(ctx context.Context, b *core.Batch) error {
	s.refund = append(s.refund, ctx.Err())
	return s.Bound.Refund(ctx, b)
}

func (s *contexts) Reset(ctx context.Context, b *core.Batch) error {
	s.reset = append(s.reset, ctx.Err())
	return s.Bound.Reset(ctx, b)
}

func TestARequestIsSettledAfterItsClientHasGone(t *testing.T) {
	s := &contexts{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))}
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(core.Request, core.Outcome) bool { return false }},
		{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Clears: func(core.Request, core.Outcome) bool { return true }},
	}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := &request{ctx: ctx}
	d := l.Check(r)
	cancel()
	l.Settle(r, d, core.Outcome{Status: 200})
	if len(s.refund) != 1 || s.refund[0] != nil || len(s.reset) != 1 || s.reset[0] != nil {
		t.Errorf("Refund got contexts in the states %v and Reset %v, want one context each that has not ended", s.refund, s.reset)
	}
	if a, b := left(t, l, "returned", "k"), left(t, l, "cleared", "k"); a != 5 || b != 5 {
		t.Errorf("%d and %d left, want 5 and 5", a, b)
	}
}

func TestASettlementThatFailsIsCounted(t *testing.T) {
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "api", Store: s, Log: (&lines{}).logger(), Rules: []core.Rule{
		{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Counts: func(core.Request, core.Outcome) bool { return false }},
	}}, nil)
	d := l.Check(&request{})
	s.fault = errFault
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	if got := l.Stats(); got.Failed != 1 || got.Allowed != 1 {
		t.Errorf("%+v, want 1 allowed and 1 failed", got)
	}
}
