package denycache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// The cache changes no decision and no wait, whatever is taken, charged and refunded
// with whatever quotas.
func TestTheCacheChangesNoDecision(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := rapid.SampledFrom([]core.Limit{
			{Quota: 4, Window: time.Second},
			{Quota: 4, Window: time.Second, Algorithm: core.FixedWindow},
			{Quota: 4, Window: time.Second, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 300 * time.Millisecond, Factor: 2, Max: time.Second, Decay: time.Second}},
			{Quota: 4, Window: time.Second, Algorithm: core.SlidingLog},
			{Quota: 4, Window: time.Second, Algorithm: core.TokenBucket, Burst: 6},
		}).Draw(r, "limit")
		f := newFixture(t, denycache.Config{}, rule(l))
		bare := core.Must(core.Must(core.NewMemory(core.MemoryConfig{Clock: f.clock.Now})).Bind("l", f.rules))
		var taken [2][]*core.Batch
		bounds := [2]core.Bound{f.bound, bare}
		both := func(op func(i int, b core.Bound) error) {
			for i, b := range bounds {
				if err := op(i, b); err != nil {
					r.Fatal(err)
				}
			}
		}
		items := func() (all [2]core.Item) {
			it := with(f.item(0, "k", rapid.Int64Range(1, 5).Draw(r, "cost")), rapid.SampledFrom([][]int64{nil, {2}, {4}, {9}, {core.Unlimited}}).Draw(r, "quotas")...)
			all[0], all[1] = it, it
			all[1].Results = make([]core.Result, 1)
			return all
		}
		r.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) {
				all := items()
				var got [2]*core.Batch
				both(func(i int, b core.Bound) error {
					got[i] = &core.Batch{Items: all[i : i+1]}
					return b.Take(context.Background(), got[i])
				})
				a, b := got[0], got[1]
				if a.Allowed != b.Allowed || a.Items[0].Results[0].RetryAfter != b.Items[0].Results[0].RetryAfter {
					rt.Fatalf("cost %d, quotas %d: allowed %v, %+v, without the cache %v, %+v", all[0].Cost, all[0].Quotas, a.Allowed, a.Items[0].Results, b.Allowed, b.Items[0].Results)
				}
				for i := range got {
					if b.Allowed {
						taken[i] = append(taken[i], got[i])
					}
				}
			},
			"charge": func(*rapid.T) {
				all := items()
				both(func(i int, b core.Bound) error {
					batch := &core.Batch{Items: all[i : i+1]}
					taken[i] = append(taken[i], batch)
					return b.Charge(context.Background(), batch)
				})
			},
			"refund": func(rt *rapid.T) {
				if len(taken[0]) == 0 {
					return
				}
				which, part := rapid.IntRange(0, len(taken[0])-1).Draw(rt, "which"), rapid.Int64Range(0, 5).Draw(rt, "part")
				both(func(i int, b core.Bound) error {
					batch := taken[i][which]
					taken[i] = slices.Delete(taken[i], which, which+1)
					batch.Items[0].Cost = min(part, batch.Items[0].Cost)
					return b.Refund(context.Background(), batch)
				})
			},
			"advance": func(rt *rapid.T) {
				f.clock.Advance(time.Duration(rapid.Int64Range(0, 400).Draw(rt, "ms")) * time.Millisecond)
			},
		})
	})
}

func (f *fixture) charge(items ...core.Item) *core.Batch {
	f.t.Helper()
	b := &core.Batch{Items: items}
	if err := f.bound.Charge(context.Background(), b); err != nil || !b.Allowed {
		f.t.Fatalf("allowed %v, error %v", b.Allowed, err)
	}
	return b
}

func with(it core.Item, quotas ...int64) core.Item {
	it.Quotas = quotas
	return it
}

// A denial is one of a cost and of quotas: it denies no request with others, and is
// remembered for those with the same.
func TestADenialIsOneOfItsQuotas(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(3))
	f.take(f.item(0, "k", 3))
	for _, quotas := range [][]int64{nil, {1}, {2}} {
		if n := f.asked(func() {
			for range 5 {
				if f.take(with(f.item(0, "k", 1), quotas...)).Allowed {
					t.Errorf("quotas %d: admitted", quotas)
				}
			}
		}); n != 1 {
			t.Errorf("quotas %d: the store is asked %d times, want 1", quotas, n)
		}
	}
	if !f.take(with(f.item(0, "k", 1), 4)).Allowed || !f.take(with(f.item(0, "k", 1), core.Unlimited)).Allowed {
		t.Error("denied from what was remembered under other quotas")
	}
	if f.take(with(f.item(0, "k", 1), 5)).Allowed {
		t.Error("five of five are used, and one more is admitted")
	}
}

// Each limit's quota counts.
func TestADenialIsOneOfAllQuotas(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerHour(1), core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	for _, quotas := range [][]int64{{1, 1}, {1, 2}, {2, 1}} {
		if n := f.asked(func() { f.take(with(f.item(0, "k", 1), quotas...)) }); n != 1 {
			t.Errorf("quotas %d: the store is asked %d times, want 1", quotas, n)
		}
	}
	if !f.take(with(f.item(0, "k", 1), 2, 2)).Allowed {
		t.Error("what both limits admit is denied")
	}
}

// What is remembered is right after a charge, and after a refund of a part of it.
func TestAChargeChangesTheWait(t *testing.T) {
	f := newFixture(t, denycache.Config{Longest: time.Hour}, rule(core.Limit{Quota: 6, Window: time.Minute, Algorithm: core.TokenBucket}))
	wait := func(quotas ...int64) time.Duration {
		return f.take(with(f.item(0, "k", 1), quotas...)).Items[0].Results[0].RetryAfter
	}
	f.take(f.item(0, "k", 6))
	if got := wait(); got != 10*time.Second {
		t.Fatalf("a wait of %v", got)
	}
	b := f.charge(f.item(0, "k", 3))
	if got := wait(); got != 40*time.Second {
		t.Errorf("after a charge of three: a wait of %v, want 40s", got)
	}
	b.Items[0].Cost = 2
	if err := f.bound.Refund(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := wait(); got != 20*time.Second {
		t.Errorf("after a refund of two: a wait of %v, want 20s", got)
	}
	f.take(with(f.item(0, "k", 1), 60)) // the debt is paid off ten times as fast from here on
	if got := wait(); got != 3*time.Second {
		t.Errorf("after a take with a higher quota: a wait of %v, want 3s", got)
	}
}

// A denial that is on its way when a charge, or a take with quotas of its own, changes
// the wait is not remembered.
func TestADenialOnItsWayIsNotRemembered(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"a charge":               func(f *fixture) { f.charge(with(f.item(0, "k", 1), 60)) },
		"a take with its quotas": func(f *fixture) { f.take(with(f.item(0, "k", 1), 60)) },
	} {
		f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 6, Window: time.Minute, Algorithm: core.TokenBucket}))
		f.take(f.item(0, "k", 6))
		f.inner.after = func() { f.inner.after = nil; change(f) }
		if f.take(f.item(0, "k", 1)).Allowed {
			t.Fatal("admitted")
		}
		if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
			t.Errorf("%s: the store is asked %d times, want 1", name, n)
		}
	}
}

// A charge that fails may have been made.
func TestAChargeThatFailsForgets(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	f.inner.err = errors.New("no answer")
	if err := f.bound.Charge(t.Context(), &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}); !errors.Is(err, f.inner.err) {
		t.Errorf("%v", err)
	}
	f.inner.err = nil
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
		t.Errorf("the store is asked %d times, want 1", n)
	}
}

// Takes with quotas of their own do not keep denials of other keys from being
// remembered.
func TestOtherKeysWithQuotasLeaveADenialAlone(t *testing.T) {
	// In one table of 200, another key shares a generation with k, and the denial is lost.
	for range 4 {
		if remembersBesideQuotas(t) {
			return
		}
	}
	t.Error("four tables have forgotten the denial, want one at most")
}

func remembersBesideQuotas(t *testing.T) bool {
	t.Helper()
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.item(0, "k", 1))
	f.inner.after = func() {
		f.inner.after = nil
		for i := range 5 {
			f.take(with(f.item(0, fmt.Sprint("other", i), 1), 60))
		}
	}
	f.take(f.item(0, "k", 1))
	return f.asked(func() { f.take(f.item(0, "k", 1)) }) == 0
}
