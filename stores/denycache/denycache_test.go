package denycache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func TestADeniedKeyIsNotAskedForUntilItsWaitIsOver(t *testing.T) {
	for _, l := range []core.Limit{
		core.PerMinute(3),
		{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow},
		{Quota: 3, Window: time.Minute, Algorithm: core.BucketedWindow, Precision: time.Second},
		{Quota: 3, Window: time.Minute, Algorithm: core.SlidingLog},
		{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket},
	} {
		t.Run(l.String(), func(t *testing.T) {
			f := newFixture(t, denycache.Config{Longest: 2 * time.Minute}, rule(l))
			f.take(f.k(3))
			first := f.take(f.k(1)).Items[0].Results[0]
			if first.Allowed {
				t.Fatal("not over the limit")
			}
			f.want(0, "during the wait", func() {
				passed := (first.RetryAfter / 3).Truncate(time.Microsecond)
				f.clock.Advance(passed)
				want := core.Result{Remaining: 0, ResetAfter: first.ResetAfter - passed, MoreAfter: first.MoreAfter - passed, RetryAfter: first.RetryAfter - passed}
				for range 100 {
					if got := f.take(f.k(1)); got.Allowed || !got.Cached || got.Items[0].Results[0] != want || got.Items[0].At != f.clock.Now().UnixMicro() {
						t.Fatalf("cached %v, result %+v, want %+v", got.Cached, got.Items[0], want)
					}
				}
				f.clock.Advance(want.RetryAfter - time.Microsecond)
				if f.take(f.k(1)).Allowed {
					t.Error("allowed a microsecond early")
				}
			})
			f.clock.Advance(time.Microsecond)
			if !f.take(f.k(1)).Allowed {
				t.Error("denied when the wait is over")
			}
		})
	}
}

// The store is asked about every other cost and about quotas of the request's own,
// whatever is remembered.
func TestOtherRequestsAskTheStore(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(3))
	f.useUp()
	for name, it := range map[string]core.Item{"another cost": f.k(2), "a lower quota": f.k(1, 2), "the limit's quota": f.k(1, 3)} {
		for range 3 {
			f.want(1, name, func() {
				if f.take(it).Allowed {
					t.Errorf("%s: allowed", name)
				}
			})
		}
	}
	f.want(0, "cost 1", func() { f.take(f.k(1)) })
	if !f.take(f.k(1, 4)).Allowed || !f.take(f.k(1, core.Unlimited)).Allowed {
		t.Error("denied from what was remembered without these quotas")
	}
}

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
		bare := core.Must(core.Must(core.NewMemory(core.MemoryConfig{Clock: f.clock.Now})).Open("l", f.rules))
		var taken [2][]*core.Batch
		both := func(op core.Op, batches [2]*core.Batch) {
			for i, c := range []core.Counters{f.counters, bare} {
				if err := storetest.Do(context.Background(), c, op, batches[i]); err != nil {
					r.Fatal(err)
				}
			}
		}
		draw := func() (two [2]*core.Batch) {
			cost := rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 4, 5}).Draw(r, "cost")
			quotas := rapid.SampledFrom([][]int64{nil, nil, {2}, {4}, {9}, {core.Unlimited}}).Draw(r, "quotas")
			for i := range two {
				two[i] = &core.Batch{Items: []core.Item{f.k(cost, quotas...)}}
			}
			return two
		}
		keep := func(two [2]*core.Batch) {
			for i := range two {
				taken[i] = append(taken[i], two[i])
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) {
				two := draw()
				both(core.OpTake, two)
				a, b := two[0], two[1]
				if a.Allowed != b.Allowed || a.Items[0].Results[0].RetryAfter != b.Items[0].Results[0].RetryAfter {
					rt.Fatalf("allowed %v, %+v, without the cache %v, %+v", a.Allowed, a.Items[0], b.Allowed, b.Items[0])
				}
				if b.Allowed {
					keep(two)
				}
			},
			"charge": func(*rapid.T) {
				two := draw()
				both(core.OpCharge, two)
				keep(two)
			},
			"grant": func(*rapid.T) { both(core.OpGrant, draw()) },
			"refund": func(rt *rapid.T) {
				if len(taken[0]) == 0 {
					return
				}
				which, part := rapid.IntRange(0, len(taken[0])-1).Draw(rt, "which"), rapid.Int64Range(0, 5).Draw(rt, "part")
				two := [2]*core.Batch{taken[0][which], taken[1][which]}
				for i := range two {
					taken[i] = slices.Delete(taken[i], which, which+1)
					two[i].Items[0].Cost = min(part, two[i].Items[0].Cost)
				}
				both(core.OpRefund, two)
			},
			"advance": func(rt *rapid.T) {
				f.clock.Advance(time.Duration(rapid.Int64Range(0, 400).Draw(rt, "ms")) * time.Millisecond)
			},
		})
	})
}

// changes are what this process may do to a denied key. All but a take of a higher quota
// may have been done although they have failed.
var changes = map[string]func(f *fixture) *core.Batch{
	"charge":    func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpCharge, Items: []core.Item{f.k(1, 60)}} },
	"refund":    func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpRefund, Items: []core.Item{f.k(1)}} },
	"grant":     func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpGrant, Items: []core.Item{f.k(1)}} },
	"reset":     func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpReset, Items: []core.Item{f.k(0)}} },
	"block":     func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpBlock, Items: []core.Item{f.k(0)}} },
	"reset all": func(*fixture) *core.Batch { return &core.Batch{Op: core.OpResetAll} },
	"take":      func(f *fixture) *core.Batch { return &core.Batch{Op: core.OpTake, Items: []core.Item{f.k(1, 60)}} },
}

// Whatever changes a key through this store is heard at once, also by a take that is
// under way, and also if it fails.
func TestAChangeIsHeardAtOnce(t *testing.T) {
	lost := errors.New("no answer")
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			do := func(f *fixture, want error) {
				t.Helper()
				if err := f.counters.Do(t.Context(), change(f)); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			}
			bucket := rule(core.Limit{Quota: 6, Window: time.Minute, Algorithm: core.TokenBucket})
			f := newFixture(t, denycache.Config{}, bucket)
			f.useUp()
			f.take(f.item(0, "other", 6))
			f.take(f.item(0, "other", 1))
			do(f, nil)
			f.want(1, "after the change", func() { f.take(f.k(1)) })
			f.want(map[string]int64{"reset all": 1}[name], "another key after the change", func() { f.take(f.item(0, "other", 1)) })

			f = newFixture(t, denycache.Config{}, bucket)
			f.useUp()
			f.clock.Advance(950 * time.Millisecond)
			f.inner.after = func() { do(f, nil) }
			f.take(f.k(1))
			f.want(1, "after a change that has overtaken a take", func() { f.take(f.k(1)) })

			f = newFixture(t, denycache.Config{}, bucket)
			f.take(f.k(6))
			f.inner.before = func() { f.take(f.k(1)) }
			do(f, nil)
			f.want(1, "after a change that a take has overtaken", func() { f.take(f.k(1)) })

			if name == "take" {
				return // a take that fails ends no denial
			}
			f = newFixture(t, denycache.Config{}, bucket)
			f.useUp()
			f.inner.lost = lost
			do(f, lost)
			f.inner.lost = nil
			f.want(1, "after a change that has failed", func() { f.take(f.k(1)) })
		})
	}
}

// A denial is remembered for a second at most, and one caller asks again a little earlier.
func TestADenialIsRememberedForASecond(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.useUp()
	for range 5 {
		f.want(0, "in 0.9 s", func() {
			for range 90 {
				f.clock.Advance(9_999 * time.Microsecond)
				if f.take(f.k(1)).Allowed {
					t.Fatal("allowed")
				}
			}
		})
		f.clock.Advance(90 * 2 * time.Microsecond)
		f.want(1, "after 0.9 s", func() {
			f.inner.before = func() {
				for range 100 {
					f.take(f.k(1))
				}
			}
			f.take(f.k(1))
		})
	}
	f.clock.Advance(time.Second)
	f.want(1, "after a second", func() { f.take(f.k(1)) })
}

// What a store that takes items one by one denies may be due to hits that are refunded:
// only the denial of a single item is remembered.
func TestATransientDenialIsNotRemembered(t *testing.T) {
	for oneByOne, want := range map[bool]int64{true: 1, false: 0} {
		f := newFixture(t, denycache.Config{}, hourly(1))
		f.inner.oneByOne = oneByOne
		f.take(f.item(0, "a", 1))
		f.take(f.item(0, "b", 1), f.item(0, "a", 1))
		f.want(want, fmt.Sprint("two items, one by one ", oneByOne), func() { f.take(f.item(0, "b", 1), f.item(0, "a", 1)) })
		f.take(f.item(0, "a", 1))
		f.want(0, fmt.Sprint("one item, one by one ", oneByOne), func() { f.take(f.item(0, "a", 1)) })
	}
}

func TestWhatIsNotTheStoresIsNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.k(1))
	f.inner.degraded = true
	f.take(f.k(1))
	f.want(1, "after a fallback's denial", func() { f.take(f.k(1)) })
	f.inner.degraded, f.inner.err = false, errors.New("down")
	if err := f.counters.Do(t.Context(), &core.Batch{Op: core.OpTake, Items: []core.Item{f.k(1)}}); !errors.Is(err, f.inner.err) {
		t.Errorf("error %v", err)
	}
	f.inner.err = nil
	f.want(1, "after a failure", func() { f.take(f.k(1)) })
}

// New rules decide anew what is remembered: no denial by limits that are no more.
func TestNewRulesForgetDenials(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.k(1))
	f.take(f.k(1))
	f.counters = core.Must(f.counters.Reopen([]core.StoreRule{hourly(2)}))
	if !f.take(f.k(1)).Allowed {
		t.Error("denied by limits that are no more")
	}
	f.take(f.k(1))
	if b := f.take(f.k(1)); b.Allowed || !b.Cached {
		t.Errorf("allowed %v, cached %v, want a cached denial", b.Allowed, b.Cached)
	}
}

// One denied key denies the batch, whichever it is. The other items have not been looked at, and
// their results are cleared.
func TestOneDeniedKeyDeniesTheBatch(t *testing.T) {
	f := newFixture(t, denycache.Config{},
		core.StoreRule{Name: "ip", Limits: []core.Limit{core.PerHour(100), core.PerMinute(1)}},
		core.StoreRule{Name: "user", Limits: []core.Limit{core.PerMinute(50), {Quota: 0, Window: time.Minute}}})
	f.useUp()
	junk := core.Result{Allowed: true, Remaining: 77, ResetAfter: time.Hour, MoreAfter: time.Hour, RetryAfter: time.Hour}
	user, ip := f.item(1, "alice", 1), f.k(1)
	for _, items := range [][]core.Item{{user, ip}, {ip, user}} {
		user.Results[0], ip.Results[0], ip.Results[1] = junk, junk, junk
		f.want(0, "a denied key of two", func() {
			b := f.take(items...)
			got := [][]core.Result{user.Results, ip.Results}
			if b.Allowed || !b.Cached || b.Items[0].Unknown != (b.Items[0].Rule == 1) || b.Items[1].Unknown != (b.Items[1].Rule == 1) ||
				got[0][0] != (core.Result{}) || got[0][1] != (core.Result{}) ||
				got[1][1].Allowed || got[1][1].RetryAfter <= 0 || !got[1][0].Allowed || got[1][0].Remaining != 99 {
				t.Errorf("allowed %v, results %+v", b.Allowed, got)
			}
		})
	}
	if !f.take(f.item(0, "other", 1)).Allowed {
		t.Error("another key of the rule is denied")
	}
	if b := f.take(f.item(1, "k", 1)); b.Cached || b.Items[0].Unknown {
		t.Error("a key of another rule is denied from memory")
	}
}

// Of several limits, each is as it is at the time of the request: one whose wait is over allows it.
func TestTheLimitsOfARememberedDenial(t *testing.T) {
	const ms = time.Millisecond
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 1, Window: 300 * ms, Algorithm: core.FixedWindow}, core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}))
	f.useUp()
	for _, row := range []struct {
		pass, left time.Duration // of the hour
		asks       int64
		short      core.Result
	}{
		{200 * ms, time.Hour - 200*ms, 0, core.Result{ResetAfter: 100 * ms, MoreAfter: 100 * ms, RetryAfter: 100 * ms}},
		{200 * ms, time.Hour - 400*ms, 0, core.Result{Allowed: true, MoreAfter: time.Microsecond}},
		{600 * ms, time.Hour - 1000*ms, 1, core.Result{Allowed: true, Remaining: 1}},
		{100 * ms, time.Hour - 1100*ms, 0, core.Result{Allowed: true, Remaining: 1}},
	} {
		f.clock.Advance(row.pass)
		f.want(row.asks, row.left.String(), func() {
			want := []core.Result{row.short, {ResetAfter: row.left, MoreAfter: row.left, RetryAfter: row.left}}
			if b := f.take(f.k(1)); b.Allowed || b.Cached != (row.asks == 0) || !slices.Equal(b.Items[0].Results, want) {
				t.Errorf("%+v, want %+v", b.Items[0].Results, want)
			}
		})
	}
}

// What the other store has not looked at is not remembered as denied.
func TestItemsThatTheStoreHasNotLookedAtAreNotRemembered(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(0))
	f.inner.unlookedAt = true
	f.take(f.item(0, "first", 1), f.item(0, "last", 1))
	f.want(0, "the last item", func() { f.take(f.item(0, "last", 1)) })
	f.want(1, "the first item", func() { f.take(f.item(0, "first", 1)) })
}

// The wait that is remembered begins before the store was asked: however long the
// answer takes, the key is allowed when the wait is over.
func TestARememberedWaitIsNoLongerThanTheStores(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.Limit{Quota: 1, Window: 500 * time.Millisecond, Algorithm: core.FixedWindow}))
	f.take(f.k(1))
	f.inner.after = func() { f.clock.Advance(300 * time.Millisecond) }
	if f.take(f.k(1)).Allowed {
		t.Fatal("not over the limit")
	}
	f.clock.Advance(200 * time.Millisecond)
	if b := f.take(f.k(1)); !b.Allowed {
		t.Errorf("denied when the wait was over: %+v", b.Items[0].Results)
	}
}

// What is remembered does not change with the caller's batch, and says nothing of the
// next request of that batch.
func TestABatchThatIsUsedAgain(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.take(f.k(1))
	b := f.take(f.k(1))
	want := b.Items[0].Results[0]
	b.Items[0].Results[0] = core.Result{Allowed: true, Remaining: 77}
	if b = f.take(f.k(1)); b.Items[0].Results[0] != want || !b.Cached {
		t.Errorf("%+v, want %+v", b.Items[0].Results[0], want)
	}
	b.Allowed = true
	if err := f.counters.Do(t.Context(), b); err != nil || b.Allowed || !b.Cached {
		t.Errorf("a batch that was allowed before: allowed %v, cached %v, %v", b.Allowed, b.Cached, err)
	}
	b.Items = []core.Item{f.item(0, "other", 1)}
	if err := f.counters.Do(t.Context(), b); err != nil || !b.Allowed || b.Cached {
		t.Errorf("allowed %v, cached %v, %v", b.Allowed, b.Cached, err)
	}
}

// A clock that is set back does not make a wait longer.
func TestAClockSetBack(t *testing.T) {
	f := newFixture(t, denycache.Config{}, rule(core.PerMinute(1)))
	f.useUp()
	f.clock.Advance(-time.Hour)
	if got := f.take(f.k(1)).Items[0].Results[0].RetryAfter; got > 2*time.Minute {
		t.Errorf("RetryAfter %v after the clock was set back", got)
	}
}

// Of more denied keys than are remembered, the store is asked again.
func TestTheNumberOfKeysIsBounded(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(0))
	const most = 65_536
	for i := range most {
		f.take(f.item(0, fmt.Sprint(i), 1))
	}
	f.clock.Advance(10 * time.Millisecond)
	f.want(0, "as many keys as are remembered", func() {
		if r := f.take(f.item(0, "0", 1)).Items[0].Results[0]; r.Allowed || r.RetryAfter != core.Never {
			t.Errorf("a denial for ever: %+v", r)
		}
	})
	f.take(f.item(0, "one more", 1))
	f.want(1, "a key of too many", func() { f.take(f.item(0, "0", 1)) })
	f.want(0, "the last key", func() { f.take(f.item(0, "one more", 1)) })
}

func TestConcurrentTakesAndResets(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(100))
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 100 {
				if f.take(f.k(1)).Allowed {
					allowed.Add(1)
				}
				f.take(f.item(0, "other", 50))
				if g == 0 {
					f.do(core.OpReset, f.item(0, "other", 0))
				}
			}
		})
	}
	wg.Wait()
	f.do(core.OpReset, f.item(0, "other", 0))
	if allowed.Load() != 100 || !f.take(f.item(0, "other", 1)).Allowed {
		t.Errorf("%d allowed, want 100; or a key that has been reset is denied", allowed.Load())
	}
}

func TestBadConfiguration(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	for want, c := range map[string]struct {
		store   core.Store
		longest time.Duration
	}{
		"Store: <nil>: is nil: must be a store":                {nil, 0},
		"Store: *core.Memory: is nil: must be a store":         {(*core.Memory)(nil), 0},
		"Longest: -1s: must be 1ms or more, or 0 for 1s":       {memory, -time.Second},
		"Longest: 999.999µs: must be 1ms or more, or 0 for 1s": {memory, time.Millisecond - 1},
	} {
		if _, err := denycache.New(c.store, denycache.Config{Longest: c.longest}); !errors.Is(err, core.ErrConfig) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := denycache.New(memory, denycache.Config{Longest: time.Millisecond}); err != nil {
		t.Error(err)
	}
}

// What the other store says of its servers and of its promises is passed on, and so is an
// operation that it does not know.
func TestWhatTheOtherStoreSaysIsPassedOn(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	if got := f.counters.(interface{ ServerOf(int, []byte) string }).ServerOf(1, []byte("k")); got != "k1" {
		t.Errorf("the server of k is %q, want k1", got)
	}
	f.inner.oneByOne = true
	if got := f.store.Guarantees(); got != f.inner.Guarantees() || got.OneStep {
		t.Errorf("%+v", got)
	}
	if err := f.counters.Do(t.Context(), &core.Batch{Op: 1 << 15, Items: []core.Item{f.k(1)}}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("an unknown operation: %v", err)
	}
}

func TestADenialAllocatesNothing(t *testing.T) {
	f := newFixture(t, denycache.Config{}, hourly(1))
	f.useUp()
	b := f.take(f.k(1))
	if n := testing.AllocsPerRun(100, func() { _ = f.counters.Do(context.Background(), b) }); n > 0 || !b.Cached {
		t.Errorf("%v allocations", n)
	}
}
