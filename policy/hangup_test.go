package policy_test

import (
	"context"
	"errors"
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
// client hangs up while a limiter takes.
type strict struct {
	core.Store
	blind   bool   // it sees no denial coming
	hangsUp string // the limiter
	before  bool   // the limiter has taken
	client  *leaving
	refunds map[string]int
}

func (s *strict) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return &strictBound{b, s, limiter}, err
}

type strictBound struct {
	core.Bound
	store *strict
	name  string
}

func (b *strictBound) Take(ctx context.Context, batch *core.Batch) error {
	here := !batch.Peek && b.name == b.store.hangsUp
	if here && b.store.before {
		b.store.client.hangUp()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := b.Bound.Take(ctx, batch)
	if batch.Peek && b.store.blind {
		for i := range batch.Items {
			for j := range batch.Items[i].Results {
				batch.Items[i].Results[j] = core.Result{Allowed: true, Remaining: 1}
			}
		}
		batch.Allowed = true
	}
	if here && !b.store.before {
		b.store.client.hangUp()
	}
	return err
}

func (b *strictBound) Refund(ctx context.Context, batch *core.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.store.refunds[b.name]++
	return b.Bound.Refund(ctx, batch)
}

// What one policy has been charged is given back if another one denies the request,
// also if the client has hung up meanwhile and the store looks at the request's
// context.
func TestWhatAPolicyWasChargedIsGivenBackAfterAHangUp(t *testing.T) {
	for name, c := range map[string]struct {
		file, hangsUp string
		before        bool
		reason        core.Reason
	}{
		"while the last one denies":             {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 0/h}]", "b", false, core.Failed},
		"after the last one has decided":        {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 0/h}]", "c", false, core.OverLimit},
		"before the second one has taken":       {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}]", "b", true, core.Failed},
		"before any has taken":                  {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}]", "a", true, core.Failed},
		"after all have taken, and none denies": {"[{name: a, limits: 9/h}, {name: b, limits: 9/h}]", "b", false, core.WithinLimits},
	} {
		t.Run(name, func(t *testing.T) {
			memory := core.Must(core.NewMemory(core.MemoryConfig{}))
			defer memory.Close() //nolint:errcheck // nothing depends on it
			store := &strict{Store: memory, blind: true, hangsUp: c.hangsUp, before: c.before, client: newLeaving(t), refunds: map[string]int{}}
			set, err := policy.Parse("f", []byte("policies: "+c.file), policy.WithStore(store))
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close() //nolint:errcheck // nothing depends on it
			d := set.Check(store.client)
			if d.Reason != c.reason || c.reason == core.Failed && !errors.Is(d.Err, context.Canceled) || c.reason != core.Failed && d.Err != nil {
				t.Errorf("the decision is %v, error %v, want %v", d, d.Err, c.reason)
			}
			store.hangsUp, store.blind = "", false
			want := int64(9)
			if c.reason == core.WithinLimits {
				want = 8 // a charge stays, whoever hangs up
			}
			for _, name := range []string{"a", "b"} {
				l, _ := set.Limiter(name)
				if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name}); err != nil || d.Remaining != want {
					t.Errorf("%s has %d left (%v), want %d", name, d.Remaining, err, want)
				}
				if store.refunds[name] > 1 {
					t.Errorf("%s is given back %d times", name, store.refunds[name])
				}
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
	l, _ := s.set.Limiter("b")
	if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "b"}); err != nil || d.Remaining != 3 {
		t.Errorf("b has %d left (%v), want 3", d.Remaining, err)
	}
}
