package synced_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// The three ways of exchanging.
var intervals = map[string]time.Duration{"periodic": 100 * time.Millisecond, "through": 0, "local": -1}

// keyed is the Counters of one rule, as the tests of charges use it.
type keyed struct {
	core.Counters
	t      *testing.T
	limits int
}

func bindRule(t *testing.T, s *synced.Store, limits ...core.Limit) keyed {
	t.Helper()
	return keyed{core.Must(s.Open("l", []core.StoreRule{{Name: "r", Limits: limits}})), t, len(limits)}
}

func (k keyed) do(op core.Op, cost int64, quotas ...int64) *core.Batch {
	k.t.Helper()
	b := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: cost, Quotas: quotas, Results: make([]core.Result, k.limits)}}}
	if err := storetest.Do(context.Background(), k, op, b); err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k keyed) take(cost int64, quotas ...int64) *core.Batch {
	k.t.Helper()
	return k.do(core.OpTake, cost, quotas...)
}

func (k keyed) charge(cost int64, quotas ...int64) *core.Batch {
	k.t.Helper()
	return k.do(core.OpCharge, cost, quotas...)
}

func (k keyed) left(quotas ...int64) int64 {
	k.t.Helper()
	return k.take(0, quotas...).Items[0].Results[0].Remaining
}

// eachWay calls f in a bubble for each way of exchanging, at the beginning of a day.
func eachWay(t *testing.T, f func(t *testing.T, interval time.Duration)) {
	for name, interval := range intervals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour + time.Millisecond)))
				f(t, interval)
			})
		})
	}
}

// A take has the quotas of its request, and what is counted does not depend on them.
func TestQuotasOfARequest(t *testing.T) {
	for _, algorithm := range []core.Algorithm{core.FixedWindow, core.SlidingWindow} {
		eachWay(t, func(t *testing.T, interval time.Duration) {
			s := newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet})
			k := bindRule(t, s, core.Limit{Quota: 3, Window: time.Hour, Algorithm: algorithm, Aligned: true})
			for i, c := range []struct {
				cost, quota, left int64
				allowed           bool
			}{
				{2, 2, 0, true}, {1, 2, 0, false}, {1, 3, 0, true}, {1, 0, 0, false}, {4, 10, 3, true}, {1, 3, 0, false},
				{5, core.Unlimited, 0, true}, {1, 12, 0, false}, {1, 13, 0, true}, {core.MaxQuota + 1, core.Unlimited, 0, true},
			} {
				if i == 9 && interval > 0 {
					time.Sleep(time.Second) // what the backend has and what is new are added up
				}
				b := k.take(c.cost, c.quota)
				if r := b.Items[0].Results[0]; b.Allowed != c.allowed || r.Allowed != c.allowed || r.Remaining != c.left || (r.RetryAfter == 0) != c.allowed {
					t.Errorf("take %d, %d with a quota of %d: allowed %v, %+v", i, c.cost, c.quota, b.Allowed, r)
				}
			}
			if b := k.do(core.OpPeek, 1, core.Unlimited); !b.Allowed || !b.Items[0].Results[0].Allowed {
				t.Errorf("a peek without a quota: %+v", b)
			}
			if got := k.left(core.MaxQuota); got != 0 {
				t.Errorf("%d left, want 0: the count stops at the highest quota", got)
			}
		})
	}
}

// A charge is never denied, and of it any part may be refunded.
func TestCharge(t *testing.T) {
	eachWay(t, func(t *testing.T, interval time.Duration) {
		s := newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet})
		k := bindRule(t, s, core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true}, aligned(100, time.Minute))
		want := func(b *core.Batch, want string) {
			t.Helper()
			if got := fmt.Sprint(b.Allowed, b.Items[0].Results); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		want(k.take(3), "true [{true 7 59m59.999s 59m59.999s 0s} {true 97 1m39.999001s 59.999001s 0s}]")
		b := k.charge(30)
		want(b, "true [{true 0 59m59.999s 59m59.999s 0s} {true 67 1m58.180819s 59.999001s 0s}]")
		want(k.take(1), "false [{false 0 59m59.999s 59m59.999s 59m59.999s} {true 67 1m58.180819s 59.999001s 0s}]")
		time.Sleep(500 * time.Millisecond)
		for _, part := range []int64{4, 25} {
			b.Items[0].Cost = part
			if err := storetest.Do(t.Context(), k, core.OpRefund, b); err != nil {
				t.Fatal(err)
			}
		}
		if got := k.left(); got != 6 {
			t.Errorf("%d left after refunds of 29 of 30, want 6", got)
		}
		if got := k.charge(1, 40, core.Unlimited).Items[0].Results; got[0].Remaining != 35 || got[1].Remaining != 95 {
			t.Errorf("with quotas of the request: %+v, want 35 and 95 left", got)
		}
		k.charge(0)
		if got := k.left(40, 100); got != 35 {
			t.Errorf("%d left after a charge of nothing, want 35", got)
		}
		time.Sleep(time.Minute)
		want(k.charge(1), "true [{true 4 58m59.499s 58m59.499s 0s} {true 95 59.499001s 11.499001s 0s}]")
	})
}

// A reset forgets the hits of the window before, too.
func TestAResetInTheNextWindow(t *testing.T) {
	eachWay(t, func(t *testing.T, interval time.Duration) {
		l := newLimiter(t, newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet}), aligned(10, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second)))
		for range 6 {
			take(t, l, "k")
		}
		time.Sleep(31 * time.Second)
		if got := left(t, l, "k"); got > 5 {
			t.Errorf("%d left before the reset, want 5 at most", got)
		}
		if err := l.Reset(t.Context(), core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "k"); got != 10 {
			t.Errorf("%d left after the reset, want 10", got)
		}
	})
}

// Hits that this process is pushing, or could not push before the reset, do not come back after it.
func TestAResetOfHitsOnTheirWay(t *testing.T) {
	for name, fault := range map[string]func(b *shared){
		"a push that fails":        func(b *shared) { b.down = true },
		"a push that is under way": func(b *shared) { b.latency = time.Second / 2 },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
			l := newLimiter(t, s, aligned(10, day))
			take(t, l, "k")
			b.set(fault)
			go s.Sync(context.Background()) //nolint:errcheck // it may fail
			synctest.Wait()
			b.set(func(b *shared) { b.down, b.latency = false, 0 })
			if err := l.Reset(t.Context(), core.Hit{Rule: "r", Key: "k"}); err != nil {
				t.Fatal(err)
			}
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := left(t, l, "k"); got != 10 || b.total() != 0 {
				t.Errorf("%s: %d left after the reset, and the backend has %d hits", name, got, b.total())
			}
		})
	}
}

// Each of Config.Windows has counters of its own.
func TestTheWindowsOfIncrement(t *testing.T) {
	s := newStore(t, nil, synced.Config{Interval: -1, Windows: []time.Duration{365 * day, 366 * day}})
	for i, window := range []time.Duration{365 * day, 366 * day} {
		for j := range i + 1 {
			if got, err := s.Increment(t.Context(), "k", window, 10); err != nil || got != float64(10*(j+1)) {
				t.Errorf("%v: %v, %v", window, got, err)
			}
		}
	}
}

// With Interval 0, processes together allow no more than the quota.
func TestThrough(t *testing.T) {
	b := newShared()
	_, limiters := newNodes(t, b, 4, synced.Config{}, aligned(20, time.Hour))
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for _, l := range limiters {
		for range 40 {
			wg.Go(func() {
				d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					allowed.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if n := allowed.Load(); n > 20 || n < 10 {
		t.Errorf("%d of 160 allowed, want at most 20", n)
	}
	if got := b.total(); got != allowed.Load() {
		t.Errorf("the backend has %d hits, %d were allowed", got, allowed.Load())
	}
	for range 30 {
		take(t, limiters[0], "k")
	}
	if got := b.total(); got != 20 {
		t.Errorf("in the end the backend has %d hits, want 20", got)
	}
	b.set(func(b *shared) { b.down = true })
	if _, err := limiters[0].Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, errDown) {
		t.Errorf("without the backend: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s, other := newStore(t, b, synced.Config{Windows: []time.Duration{day}}), newStore(t, &node{b}, synced.Config{Windows: []time.Duration{day}})
		_, _ = other.Increment(t.Context(), "k", day, 7)
		if rate, err := s.Rate(t.Context(), "k", day, 0); err != nil || rate != 7 {
			t.Errorf("of 7 hits of another process, Rate knows %v, %v", rate, err)
		}
		b.latency = time.Hour
		for i := range int64(2) { // adds a hit, and reads only
			began := time.Now()
			rate, err := s.Increment(t.Context(), "k", day, i)
			if !errors.Is(err, context.DeadlineExceeded) || rate != 0 || time.Since(began) != synced.DefaultTimeout {
				t.Errorf("an Increment by %d: %v, %v after %v", i, rate, err, time.Since(began))
			}
		}
	})
}
