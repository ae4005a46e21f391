package denycache_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func TestARefusedKeyIsNotAskedForUntilItsWaitIsOver(t *testing.T) {
	for _, l := range []core.Limit{
		core.PerMinute(3),
		{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow},
		{Quota: 3, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: time.Second},
		{Quota: 3, Window: time.Minute, Algorithm: core.SlidingLog},
		{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket},
	} {
		t.Run(l.String(), func(t *testing.T) {
			f := newFixture(t, denycache.Config{Longest: 2 * time.Minute}, rule(l))
			for range 3 {
				f.take(f.item(0, "k", 1))
			}
			first := f.take(f.item(0, "k", 1)).Items[0].Results[0]
			if first.Allowed {
				t.Fatal("not over the limit")
			}
			n := f.asked(func() {
				f.clock.Advance((first.RetryAfter / 3).Truncate(time.Microsecond))
				passed := (first.RetryAfter / 3).Truncate(time.Microsecond)
				want := core.Result{Remaining: 0, ResetAfter: first.ResetAfter - passed, MoreAfter: first.MoreAfter - passed, RetryAfter: first.RetryAfter - passed}
				for range 100 {
					if got := f.take(f.item(0, "k", 1)); got.Allowed || got.Items[0].Results[0] != want || got.Items[0].At != f.clock.Now().UnixMicro() {
						t.Fatalf("result %+v, want %+v", got.Items[0], want)
					}
				}
				f.clock.Advance(want.RetryAfter - time.Microsecond)
				if f.take(f.item(0, "k", 1)).Allowed {
					t.Error("allowed a microsecond early")
				}
			})
			if n != 0 || f.store.Refused() != 101 {
				t.Errorf("the store was asked %d times, %d refused without", n, f.store.Refused())
			}
			f.clock.Advance(time.Microsecond)
			if !f.take(f.item(0, "k", 1)).Allowed {
				t.Error("refused when the wait is over")
			}
		})
	}
}

// A request of another cost has a wait of its own: the store is asked for it.
func TestCost(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 5, Window: time.Minute, Algorithm: core.TokenBucket}))
	f.take(f.item(0, "k", 3))
	waits := map[int64]time.Duration{3: 12 * time.Second, 4: 24 * time.Second, 5: 36 * time.Second}
	for round := range 3 {
		n := f.asked(func() {
			for cost, want := range waits {
				b := f.take(f.item(0, "k", cost))
				if got := b.Items[0].Results[0].RetryAfter; b.Allowed || got != want {
					t.Errorf("cost %d: allowed %v, RetryAfter %v, want %v", cost, b.Allowed, got, want)
				}
			}
		})
		if round == 0 && n != 3 || round > 0 && n != 0 {
			t.Errorf("round %d: asked %d times", round, n)
		}
	}
	if !f.take(f.item(0, "k", 0)).Allowed {
		t.Error("a cost of 0 is denied")
	}
	if !f.take(f.item(0, "k", 2)).Allowed {
		t.Error("what costs less and fits is denied")
	}
	n := f.asked(func() {
		for range 10 {
			f.clock.Advance(10 * time.Millisecond)
			if got := f.take(f.item(0, "other", 6)).Items[0].Results[0]; got.RetryAfter != core.Never {
				t.Errorf("above the quota: %+v", got)
			}
		}
	})
	if n != 1 {
		t.Errorf("asked %d times for a cost above the quota", n)
	}
	if !f.take(f.item(0, "other", 5)).Allowed {
		t.Error("what could never fit is remembered against what does")
	}
}

func TestResetAndRefundAreNoticedAtOnce(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	taken := f.take(f.item(0, "k", 1))
	again := f.item(0, "k", 1)
	if f.take(again).Allowed {
		t.Fatal("not over the limit")
	}
	if err := f.bound.Refund(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	if !f.take(f.item(0, "k", 1)).Allowed {
		t.Error("refused after a refund")
	}
	f.take(again)
	if err := f.bound.Reset(t.Context(), &core.Batch{Items: []core.Item{again}}); err != nil {
		t.Fatal(err)
	}
	if !f.take(f.item(0, "k", 1)).Allowed {
		t.Error("refused after a reset")
	}
}

// A take that was refused before a Reset, and says so after it, is not
// remembered.
func TestARefusalFromBeforeAResetIsNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	slow := &resetting{Bound: f.bound}
	store, err := denycache.New(fixed{slow}, denycache.Config{Clock: f.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	b, err := store.Bind("x", f.rules)
	if err != nil {
		t.Fatal(err)
	}
	slow.outer = b
	batch := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
	if err := b.Take(t.Context(), batch); err != nil || batch.Allowed {
		t.Fatalf("allowed %v, error %v", batch.Allowed, err)
	}
	if err := b.Take(t.Context(), batch); err != nil || !batch.Allowed {
		t.Errorf("allowed %v, error %v after the reset", batch.Allowed, err)
	}
}

// fixed is a store of one Bound.
type fixed struct{ b core.Bound }

func (f fixed) Bind(string, []core.StoreRule) (core.Bound, error) { return f.b, nil }

// resetting resets the items once, between deciding and answering.
type resetting struct {
	core.Bound
	outer core.Bound
	once  sync.Once
}

func (r *resetting) Take(ctx context.Context, batch *core.Batch) error {
	err := r.Bound.Take(ctx, batch)
	r.once.Do(func() { _ = r.outer.Reset(ctx, batch) })
	return err
}

func TestOneRefusedKeyRefusesTheBatch(t *testing.T) {
	f := newFixture(t, denycache.Config{},
		core.StoreRule{Name: "ip", Limits: []core.Limit{core.PerMinute(1), core.PerHour(100)}},
		core.StoreRule{Name: "user", Limits: []core.Limit{core.PerMinute(50), {Quota: 0, Window: time.Minute}}})
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	n := f.asked(func() {
		b := f.take(f.item(1, "alice", 1), f.item(0, "k", 1))
		got := [][]core.Result{b.Items[0].Results, b.Items[1].Results}
		if b.Allowed || !b.Items[0].Unknown || b.Items[1].Unknown || got[0][0] != (core.Result{}) || got[0][1] != (core.Result{}) ||
			got[1][0].Allowed || !got[1][1].Allowed || got[1][1].Remaining != 99 {
			t.Errorf("allowed %v, results %+v", b.Allowed, got)
		}
	})
	if n != 0 {
		t.Errorf("asked %d times", n)
	}
	if !f.take(f.item(0, "other", 1)).Allowed {
		t.Error("another key of the rule is refused")
	}
}

func TestNewLimitsForgetRefusals(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	bound, err := f.bound.Rebind([]core.StoreRule{rule(core.PerMinute(2))})
	if err != nil {
		t.Fatal(err)
	}
	f.bound = bound
	if !f.take(f.item(0, "k", 1)).Allowed {
		t.Error("refused by limits that are no more")
	}
}

func TestWhatIsNotTheStoresIsNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	f.inner.mark = true
	f.take(f.item(0, "k", 1))
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
		t.Error("a fallback's refusal is remembered")
	}
	f.inner.mark, f.inner.err = false, errors.New("down")
	if err := f.bound.Take(t.Context(), &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}); !errors.Is(err, f.inner.err) {
		t.Errorf("error %v", err)
	}
	f.inner.err = nil
	if n := f.asked(func() { f.take(f.item(0, "k", 1)) }); n != 1 {
		t.Error("a failure is remembered")
	}
}

// A clock that is set back does not make a wait longer.
func TestAClockSetBack(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.take(f.item(0, "k", 1))
	f.take(f.item(0, "k", 1))
	f.clock.Advance(-time.Hour)
	if got := f.take(f.item(0, "k", 1)).Items[0].Results[0].RetryAfter; got > 2*time.Minute {
		t.Errorf("RetryAfter %v after the clock was set back", got)
	}
}

// Everything but the staleness that the package documents is as without it.
func TestConcurrentTakesAdmitTheQuota(t *testing.T) {
	f := newFixture(t, denycache.Config{MaxKeys: 64}, rule(core.PerMinute(100)))
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for range 50 {
				b := &core.Batch{Items: []core.Item{f.item(0, "k", 1)}}
				if f.bound.Take(context.Background(), b) == nil && b.Allowed {
					allowed.Add(1)
				}
				if g == 0 {
					_ = f.bound.Reset(context.Background(), &core.Batch{Items: []core.Item{f.item(0, "other", 1)}})
				}
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 100 {
		t.Errorf("%d admitted, want 100", allowed.Load())
	}
}

func TestBadConfiguration(t *testing.T) {
	_, err := denycache.New(nil, denycache.Config{MaxKeys: -1, Longest: time.Microsecond})
	for _, want := range []string{"Store: nil", "MaxKeys: -1", "Longest: 1µs"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestARefusalAllocatesNothing(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	b := f.take(f.item(0, "k", 1))
	f.take(b.Items...)
	if n := testing.AllocsPerRun(100, func() { _ = f.bound.Take(context.Background(), b) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
