package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// partly is a store that denies the first batch for its second item, and has not
// looked at the first item; it allows later ones.
type partly struct{ takes int }

func (p *partly) Open(string, []core.StoreRule) (core.Counters, error) { return p, nil }
func (p *partly) Reopen([]core.StoreRule) (core.Counters, error)       { return p, nil }
func (*partly) Guarantees() core.Guarantees                            { return core.Guarantees{Ops: core.OpTake} }

func (p *partly) Do(_ context.Context, b *core.Batch) error {
	p.takes++
	b.Allowed = p.takes > 1
	for i := range b.Items {
		b.Items[i].Results[0] = core.Result{Allowed: b.Allowed, Remaining: 1}
	}
	if !b.Allowed {
		b.Items[0].Unknown = true
		b.Items[0].Results[0].RetryAfter = core.Never // means nothing
		b.Items[1].Results[0].RetryAfter = time.Second
	}
	return nil
}

func TestWhatTheStoreHasNotLookedAt(t *testing.T) {
	l := core.Must(core.New(core.Config{Name: "l", Store: new(partly), Rules: []core.Rule{
		{Name: "a", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "b", Limits: []core.Limit{core.PerMinute(5)}},
	}}))
	for take, want := range []int{1, 2, 2} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "a"}, core.Hit{Rule: "b"})
		if err != nil || d.Allowed != (take > 0) {
			t.Fatalf("take %d: %v, %v", take, d, err)
		}
		n := 0
		for range d.Limits() {
			n++
		}
		if n != want {
			t.Errorf("take %d: %d limits, want %d", take, n, want)
		}
		if take == 0 && (d.Rule() != "b" || d.RetryAfter != time.Second) {
			t.Errorf("decided by %v", d)
		}
	}
}
