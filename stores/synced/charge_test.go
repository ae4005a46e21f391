package synced_test

import (
	"context"
	"errors"
	"fmt"
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
	b, err := s.Open("l", []core.StoreRule{{Name: "r", Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	return keyed{b, t, len(limits)}
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

func closeAll(t *testing.T, stores ...*synced.Store) {
	for _, s := range stores {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// A take has the quotas of its request, and what is counted does not depend on them.
func TestQuotasOfARequest(t *testing.T) {
	for _, algorithm := range []core.Algorithm{core.FixedWindow, core.SlidingWindow} {
		eachWay(t, func(t *testing.T, interval time.Duration) {
			s := newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet})
			defer closeAll(t, s)
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
		defer closeAll(t, s)
		k := bindRule(t, s, core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true}, core.Limit{Quota: 100, Window: 24 * time.Hour, Aligned: true})
		k.take(3)
		b := k.charge(30)
		for i, want := range []int64{0, 67} {
			if r := b.Items[0].Results[i]; !b.Allowed || !r.Allowed || r.Remaining != want || r.RetryAfter != 0 {
				t.Errorf("limit %d: allowed %v, %+v, want %d left", i, b.Allowed, r, want)
			}
		}
		if b := k.take(1); b.Allowed || b.Items[0].Results[0].RetryAfter != time.Hour-time.Millisecond {
			t.Errorf("above the quota: %v, %+v", b.Allowed, b.Items[0].Results)
		}
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
	})
}

// Counts stop at the highest quota, in the backend too.
func TestAChargeStopsAtTheHighestQuota(t *testing.T) {
	eachWay(t, func(t *testing.T, interval time.Duration) {
		s := newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet})
		defer closeAll(t, s)
		k := bindRule(t, s, core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true})
		k.charge(5)
		for range 3 {
			k.charge(1 << 62)
			time.Sleep(300 * time.Millisecond)
		}
		b := k.charge(1)
		b.Items[0].Cost = core.MaxQuota - 7
		if err := storetest.Do(t.Context(), k, core.OpRefund, b); err != nil {
			t.Fatal(err)
		}
		if got := k.left(); got != 3 {
			t.Errorf("%d left, want 3 of 10", got)
		}
	})
}

// Another process learns of a charge, and of hits that were allowed by a request's
// own quota.
func TestOtherProcessesLearnOfCharges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared()
		var stores []*synced.Store
		var all []keyed
		for range 2 {
			s := newStore(t, &node{shared}, synced.Config{Interval: time.Second, Log: quiet})
			stores, all = append(stores, s), append(all, bindRule(t, s, aligned(5, 24*time.Hour)))
		}
		defer closeAll(t, stores...)
		all[0].charge(20)
		all[0].take(7, 30)
		all[1].take(1)
		time.Sleep(3 * time.Second)
		for i, k := range all {
			if got := k.left(50); got != 22 {
				t.Errorf("process %d: %d of 50 left, want 22", i, got)
			}
			if k.take(1).Allowed {
				t.Errorf("process %d allows a hit above the quota", i)
			}
		}
	})
}

// A charge does not end with its caller, and fails when the store is closed.
func TestAChargeOfACallerThatHasGone(t *testing.T) {
	eachWay(t, func(t *testing.T, interval time.Duration) {
		s := newStore(t, newShared(), synced.Config{Interval: interval, Log: quiet})
		k := bindRule(t, s, aligned(5, 24*time.Hour))
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		b := &core.Batch{Items: []core.Item{{Key: []byte("k"), Cost: 4, Results: make([]core.Result, 1)}}}
		if err := storetest.Do(gone, k, core.OpCharge, b); err != nil || k.left() != 1 {
			t.Errorf("%d left, want 1: %v", k.left(), err)
		}
		closeAll(t, s)
		if err := storetest.Do(t.Context(), k, core.OpCharge, b); !errors.Is(err, core.ErrClosed) {
			t.Error(fmt.Sprint("after Close: ", err))
		}
	})
}

// Two processes that give back the same hits would give back too many.
func TestHitsCannotBeGranted(t *testing.T) {
	for name, interval := range intervals {
		l := core.Must(core.New(core.Config{Name: name, Store: newStore(t, newShared(), synced.Config{Interval: interval}), Rules: []core.Rule{
			{Name: "r", Limits: []core.Limit{{Quota: 5, Window: time.Hour, Aligned: true}}},
		}}))
		if _, err := l.Grant(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
