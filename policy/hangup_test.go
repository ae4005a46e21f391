package policy_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// leaving is a request whose client hangs up at some moment.
type leaving struct {
	explained
	ctx    context.Context //nolint:containedctx // the request's own
	hangUp context.CancelFunc
}

func newLeaving(t *testing.T) *leaving {
	r := &leaving{}
	r.ctx, r.hangUp = context.WithCancel(t.Context())
	return r
}

func (l *leaving) Context() context.Context { return l.ctx }

// strict is a store that does nothing for a request whose client is gone. The
// client hangs up while the limiter takes.
type strict struct {
	core.Store
	before  bool     // the limiter has taken
	client  *leaving // nil: nobody hangs up
	refunds int
}

func (s *strict) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return &strictCounters{c, s}, err
}

type strictCounters struct {
	core.Counters
	store *strict
}

func (c *strictCounters) Do(ctx context.Context, batch *core.Batch) error {
	if batch.Op == core.OpRefund {
		c.store.refunds++
	}
	if c.store.client == nil {
		return c.Counters.Do(ctx, batch)
	}
	if c.store.before {
		c.store.client.hangUp()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := c.Counters.Do(ctx, batch)
	c.store.client.hangUp()
	return err
}

// A hang-up charges all policies or none, also if the store looks at the request's
// context.
func TestAHangUpChargesAllPoliciesOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		before bool
		reason core.Reason
	}{
		"after the store has denied":   {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 0/h}]", false, core.ReasonOverLimit},
		"before the store has decided": {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}]", true, core.ReasonCanceled},
		"after the store has allowed":  {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}]", false, core.ReasonWithinLimits},
		"after a dry run, too":         {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 0/h, dry-run: true}]", false, core.ReasonWithinLimits},
	} {
		t.Run(name, func(t *testing.T) {
			memory := core.Must(core.NewMemory(core.MemoryConfig{}))
			defer memory.Close() //nolint:errcheck // nothing depends on it
			store := &strict{Store: memory, before: c.before, client: newLeaving(t)}
			set, err := policy.Parse("f", []byte("policies: "+c.file), policy.WithStore(store), policy.Log(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close() //nolint:errcheck // nothing depends on it
			d := set.Check(store.client)
			if d.Reason != c.reason || c.reason == core.ReasonCanceled && !errors.Is(d.Err, context.Canceled) || c.reason != core.ReasonCanceled && d.Err != nil {
				t.Errorf("the decision is %v, error %v, want %v", d, d.Err, c.reason)
			}
			store.client = nil
			want := int64(9)
			if c.reason == core.ReasonWithinLimits {
				want = 8 // a charge stays, whoever hangs up
			}
			for _, name := range []string{"a", "b"} {
				if d, err := set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: name}); err != nil || d.Remaining != want {
					t.Errorf("%s has %d left (%v), want %d", name, d.Remaining, err, want)
				}
			}
			if store.refunds > 0 {
				t.Errorf("%d refunds", store.refunds)
			}
		})
	}
}

// A client that has hung up before the policies decide is charged all the same.
func TestAChargeStaysWhoeverHangsUp(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 2/h}, {name: b, limits: 5/h}]")
	for i := range 4 {
		r := newLeaving(t)
		r.hangUp()
		if d := s.set.Check(r); d.Allowed != (i < 2) || d.Err != nil {
			t.Errorf("request %d: %v, %v", i, d, d.Err)
		}
	}
	if d, err := s.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: "b"}); err != nil || d.Remaining != 3 {
		t.Errorf("b has %d left (%v), want 3", d.Remaining, err)
	}
}
