package denycache_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// A request of a lower cost is admitted after a denial of a higher one: the next
// denial tells what is left and how long the wait is after that charge.
func TestAnAdmittedTakeChangesTheWaitOfOtherCosts(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 10, Window: 2 * time.Second, Algorithm: core.SlidingLog}))
	f.take(f.item(0, "k", 1))
	f.clock.Advance(700 * time.Millisecond)
	f.take(f.item(0, "k", 7))
	if r := f.take(f.item(0, "k", 3)).Items[0].Results[0]; r.Allowed || r.RetryAfter != 1300*time.Millisecond {
		t.Fatalf("%+v", r)
	}
	peek := &core.Batch{Peek: true, Items: []core.Item{f.item(0, "k", 2)}}
	if err := f.bound.Take(t.Context(), peek); err != nil || !peek.Allowed {
		t.Fatalf("allowed %v, error %v", peek.Allowed, err)
	}
	if n := f.asked(func() { f.take(f.item(0, "k", 3)) }); n != 0 {
		t.Errorf("a peek, which charges nothing, has made the store be asked %d times", n)
	}
	if !f.take(f.item(0, "k", 2)).Allowed {
		t.Fatal("what fits is denied")
	}
	n := f.asked(func() {
		for range 10 {
			if r := f.take(f.item(0, "k", 3)).Items[0].Results[0]; r.Allowed || r.Remaining != 0 || r.RetryAfter != 2*time.Second {
				t.Errorf("%+v, want 0 left and a wait of 2s", r)
			}
		}
	})
	if n != 1 {
		t.Errorf("the store was asked %d times, want 1", n)
	}
}

// The charge of a lower cost begins a lockout that is shorter than the remembered
// wait of a higher cost: that one is not denied any longer than the lockout.
func TestALockoutEndsForHigherCostsToo(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 50 * time.Millisecond}}))
	f.take(f.item(0, "k", 9))
	if f.take(f.item(0, "k", 2)).Allowed {
		t.Fatal("11 of 10 are admitted")
	}
	if !f.take(f.item(0, "k", 1)).Allowed {
		t.Fatal("what fits is denied")
	}
	f.clock.Advance(50 * time.Millisecond)
	if r := f.take(f.item(0, "k", 2)).Items[0].Results[0]; !r.Allowed {
		t.Errorf("denied after the lockout: %+v", r)
	}
}
