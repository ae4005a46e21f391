package core_test

import (
	"context"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

func TestARequestIsSettledAfterItsClientHasGone(t *testing.T) {
	settled := map[core.Op][]error{} // the states of the contexts
	s := &around{core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		settled[b.Op] = append(settled[b.Op], ctx.Err())
		return c.Do(ctx, b)
	}}
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(core.Request, core.Outcome) bool { return false }},
		{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Clears: func(core.Request, core.Outcome) bool { return true }},
	}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := &request{ctx: ctx}
	d := l.Check(r)
	cancel()
	l.Settle(r, d, core.Outcome{Status: 200})
	if refund, reset := settled[core.OpRefund], settled[core.OpReset]; len(refund) != 1 || refund[0] != nil || len(reset) != 1 || reset[0] != nil {
		t.Errorf("the refund got contexts in the states %v and the reset %v, want one context each that has not ended", refund, reset)
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
