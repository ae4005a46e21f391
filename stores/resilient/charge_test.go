package resilient_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

const year = 300 * 24 * time.Hour

func (s *sums) charge(i int, key string, n, quota int64) *core.Batch {
	s.t.Helper()
	b := s.batch(key, n, quota)
	if err := s.instances[i].Charge(context.Background(), b); err != nil || !b.Allowed {
		s.t.Fatalf("allowed %v, error %v", b.Allowed, err)
	}
	return b
}

func (s *sums) take(i int, key string, n, quota int64) *core.Batch {
	s.t.Helper()
	b := s.batch(key, n, quota)
	if err := s.instances[i].Take(context.Background(), b); err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *sums) expect(what, key string, want int64) {
	s.t.Helper()
	if got := s.stored(key)[0]; got != want {
		s.t.Errorf("%s: the store counts %d hits, want %d", what, got, want)
	}
}

func TestOperations(t *testing.T) {
	for name, err := range map[string]error{"the store works": nil, "the store fails": errGone} {
		t.Run(name, func(t *testing.T) {
			storetest.Operations(t, func(t testing.TB, clock func() time.Time) core.Store {
				f := newFlaky(t, clock)
				f.forgets = true
				f.fail(err)
				return newStore(t, f, resilient.Config{Timeout: patience, Clock: clock, Failures: 1 << 30})
			})
		})
	}
}

// A charge of an outage is charged to the store when it is back, above the quota too.
func TestAChargeOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(t, 1, true, resilient.Config{}, fixed(5, year))
		if b := s.charge(0, "k", 2, 0); b.Degraded {
			t.Error("degraded while the store answers")
		}
		s.instances[0].link.fail(errRefused)
		b := s.charge(0, "k", 40, 0)
		if r := b.Items[0].Results[0]; !b.Degraded || r.Remaining != 0 || r.ResetAfter <= 0 {
			t.Errorf("degraded %v, %+v", b.Degraded, r)
		}
		if s.take(0, "k", 1, 0).Allowed {
			t.Error("a hit is admitted above the quota")
		}
		s.instances[0].link.fail(nil)
		time.Sleep(2 * time.Second)
		s.expect("after the outage", "k", 42)
		if s.take(0, "k", 1, 0).Allowed {
			t.Error("the store admits a hit above the quota")
		}
		if !s.take(0, "k", 1, 43).Allowed {
			t.Error("a higher quota of the request is not used")
		}
	})
}

// The reply to a charge is lost. If the store has made the charge, it is not made
// again; if it has not, it is made when the store is back.
func TestALostReplyToACharge(t *testing.T) {
	for _, made := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newSums(t, 1, false, resilient.Config{}, fixed(5, year))
			s.charge(0, "k", 1, 0)
			link := s.instances[0].link
			if made {
				link.late.Store(true)
			} else {
				link.fail(errGone)
			}
			if !s.charge(0, "k", 7, 0).Degraded {
				t.Error("not degraded")
			}
			link.late.Store(false)
			link.fail(nil)
			for range 3 {
				time.Sleep(2 * time.Second)
				s.expect("after the lost reply", "k", 8)
			}
		})
	}
}

// The store fails again while it is charged with the hits of an outage. Every limit of the
// rule gets all of them in the end, also if other instances have charged more.
func TestAnOutageWhileTheLimitsAreCharged(t *testing.T) {
	for failing := range int64(6) {
		synctest.Test(t, func(t *testing.T) {
			s := newSums(t, 2, true, resilient.Config{}, fixed(1000, year), fixed(1000, year/2), fixed(1000, year/3))
			s.charge(1, "k", 100, 0)
			link := s.instances[0].link
			link.fail(errRefused)
			if !s.charge(0, "k", 40, 0).Degraded {
				t.Error("not degraded")
			}
			asked := new(atomic.Int64)
			link.slow.Store(func() {
				if link.fail(nil); asked.Add(1) == failing {
					link.fail(errRefused)
				}
			})
			time.Sleep(10 * time.Second)
			for j, got := range s.stored("k") {
				if got != 140 {
					t.Errorf("operation %d of the payment fails: limit %d counts %d hits, want 140", failing, j, got)
				}
			}
		})
	}
}

// A charge is not lost because the client has hung up, whether the store answers or
// not.
func TestAChargeOfACallerThatHasGone(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, down := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSums(t, 1, true, resilient.Config{}, fixed(5, year))
			if down {
				s.instances[0].link.fail(errRefused)
			}
			b := s.batch("k", 7, 0)
			if err := s.instances[0].Charge(gone, b); err != nil || b.Degraded != down {
				t.Errorf("degraded %v, error %v", b.Degraded, err)
			}
			s.instances[0].link.fail(nil)
			time.Sleep(2 * time.Second)
			s.expect("in the end", "k", 7)
		})
	}
}

// Other modes charge nothing while the store does not answer: one allows, the other
// returns the error.
func TestAChargeInOtherModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []resilient.Mode{resilient.ModeOpen, resilient.ModeClosed} {
			s := newSums(t, 1, true, resilient.Config{Meanwhile: mode}, core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 10})
			s.charge(0, "k", 2, 0)
			s.instances[0].link.fail(errRefused)
			for _, again := range []bool{false, true} { // then the circuit is open
				b := s.batch("k", 3, 20)
				err := s.instances[0].Charge(context.Background(), b)
				switch {
				case !b.Degraded:
					t.Errorf("%v: not degraded", mode)
				case mode == resilient.ModeOpen && (err != nil || !b.Allowed || b.Items[0].Results[0] != core.Result{Allowed: true, Remaining: 40}):
					t.Errorf("%v: allowed %v, %+v, error %v", mode, b.Allowed, b.Items[0].Results, err)
				case mode == resilient.ModeClosed && (err == nil || again && !errors.Is(err, resilient.ErrDown)):
					t.Errorf("%v: error %v", mode, err)
				}
			}
			s.instances[0].link.fail(nil)
			time.Sleep(2 * time.Second)
			s.expect(mode.String(), "k", 2)
		}
	})
}

// Without the store, each instance admits its part of a request's quota, and all of
// an unlimited one.
func TestAnInstanceHasItsPartOfARequestsQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(t, 3, true, resilient.Config{Instances: 3}, fixed(6, year))
		for _, i := range s.instances {
			i.link.fail(errRefused)
		}
		for quota, want := range map[int64]int64{0: 2, 6: 2, 7: 3, 30: 10, 1: 1, core.Unlimited: 50} {
			key := string(rune('a' + want))
			if quota == 6 {
				key = "six"
			}
			for i := range s.instances {
				n := int64(0)
				for n < 50 && s.take(i, key, 1, quota).Allowed {
					n++
				}
				if n != want {
					t.Errorf("quota %d, instance %d: %d admitted, want %d", quota, i, n, want)
				}
			}
		}
		for _, i := range s.instances {
			i.link.fail(nil)
		}
		time.Sleep(2 * time.Second)
		s.expect("unlimited", string(rune('a'+50)), 150)
		s.expect("a quota of 30", string(rune('a'+10)), 30)
		s.expect("a quota of 7: three, rounded up, of each", string(rune('a'+3)), 9)
	})
}

// What a token bucket and a log were charged with under a request's quota is charged to
// the store under that quota: the limit's own would keep less of it.
func TestTheQuotaOfTheRequestDecidesHowMuchIsOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, l := range []core.Limit{
			{Quota: 5, Window: year, Algorithm: core.TokenBucket},
			{Quota: 5, Window: year, Algorithm: core.SlidingLog},
		} {
			s := newSums(t, 1, true, resilient.Config{}, l)
			s.instances[0].link.fail(errRefused)
			if !s.take(0, "k", 30, 100).Allowed {
				t.Fatal("not admitted")
			}
			s.instances[0].link.fail(nil)
			time.Sleep(2 * time.Second)
			b := s.batch("k", 0, 100)
			if err := s.server.Take(t.Context(), b); err != nil || b.Items[0].Results[0].Remaining != 70 {
				t.Errorf("%v: %+v, %v; want 70 left", l, b.Items[0].Results[0], err)
			}
		}
	})
}

// A part of a degraded take is refunded in the process, and is not owed any more.
func TestARefundInPartOfADegradedTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSums(t, 2, true, resilient.Config{Instances: 2}, fixed(10, year))
		s.take(0, "k", 4, 0)
		s.instances[0].link.fail(errRefused)
		b := s.take(0, "k", 10, 50)
		if !b.Allowed || !b.Degraded {
			t.Fatal("not charged in the process")
		}
		b.Items[0].Cost = 7
		if err := s.instances[0].Refund(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if left := s.take(0, "k", 0, 50).Items[0].Results[0].Remaining; left != 25-4-3 {
			t.Errorf("%d left in the process, want 18", left)
		}
		s.instances[0].link.fail(nil)
		time.Sleep(2 * time.Second)
		s.expect("after the outage", "k", 7)
	})
}
