package storetest

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/floodgate-go/floodgate/core"
)

// lockout has waits shorter and longer than the window of variants.
var lockout = core.Lockout{First: 300 * time.Millisecond, Factor: 3, Max: 2 * time.Second, Decay: 4 * time.Second}

// variants are limits of every algorithm, small enough to reach.
func variants() []core.Limit {
	return []core.Limit{
		{Name: "sliding", Quota: 5, Window: time.Second},
		{Name: "sliding-aligned", Quota: 5, Window: time.Second, Aligned: true},
		{Name: "fixed", Quota: 5, Window: time.Second, Algorithm: core.FixedWindow},
		{Name: "fixed-aligned", Quota: 5, Window: time.Second, Algorithm: core.FixedWindow, Aligned: true},
		{Name: "bucketed", Quota: 5, Window: time.Second, Algorithm: core.BucketedWindow, Precision: 100 * time.Millisecond},
		{Name: "log", Quota: 5, Window: time.Second, Algorithm: core.SlidingLog},
		{Name: "token", Quota: 5, Window: time.Second, Algorithm: core.TokenBucket},
		{Name: "token-burst", Quota: 7, Window: time.Second, Algorithm: core.TokenBucket, Burst: 3},
		{Name: "lockout", Quota: 5, Window: time.Second, Algorithm: core.FixedWindow, Lockout: lockout},
	}
}

func (s *suite) each(t *testing.T, f func(t *testing.T, l core.Limit, store core.Store, clock *Clock)) {
	for _, l := range variants() {
		t.Run(l.Name, func(t *testing.T) {
			clock := NewClock(start())
			f(t, l, s.new(t, clock.Now), clock)
		})
	}
}

// promises tests that no window of a limit's length, wherever it begins, holds more hits than
// core.Limit.WorstCase says:
//
//	sliding_log, bucketed_window     quota
//	sliding_window, fixed_window     2 × quota
//	token_bucket                     burst + quota
//	fixed_window with a lockout      quota for each wait that begins, and once more
func (s *suite) promises(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		rapid.Check(t, func(r *rapid.T) {
			clock.Set(start())
			c := one(t, store, l)
			var hits []int64 // the times of all hits admitted
			for range rapid.IntRange(1, 60).Draw(r, "takes") {
				step := rapid.SampledFrom([]int64{0, 1, 13, l.Window.Microseconds() / 7, l.Window.Microseconds() / 2, l.Window.Microseconds() - 1, l.Window.Microseconds()}).Draw(r, "step")
				clock.Advance(time.Duration(step) * time.Microsecond)
				cost := rapid.Int64Range(1, 3).Draw(r, "cost")
				if c.take("k", cost).Allowed {
					hits = append(hits, slices.Repeat([]int64{clock.Now().UnixMicro()}, int(cost))...)
				}
			}
			most := l.WorstCase()
			for i, from := range hits {
				n := int64(0)
				for _, at := range hits[i:] {
					if at < from+l.Window.Microseconds() {
						n++
					}
				}
				if n > most {
					r.Fatalf("%v: %d hits in one window, promised are at most %d: %v", l, n, most, hits)
				}
			}
		})
	})
}

// retry tests that RetryAfter is exact: a take is denied one microsecond earlier and allowed then.
// It also tests that denied takes change nothing.
func (s *suite) retry(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		rapid.Check(t, func(r *rapid.T) {
			clock.Set(start())
			c := one(t, store, l)
			for range rapid.IntRange(1, 20).Draw(r, "takes") {
				clock.Advance(time.Duration(rapid.Int64Range(0, 700_000).Draw(r, "step")) * time.Microsecond)
				cost := rapid.Int64Range(1, 3).Draw(r, "cost")
				b := c.take("k", cost)
				if b.Allowed {
					continue
				}
				wait := b.Items[0].Results[0].RetryAfter
				if again := c.take("k", cost).Items[0].Results[0]; again != b.Items[0].Results[0] {
					r.Fatalf("%v: a denied request changed %+v to %+v", l, b.Items[0].Results[0], again)
				}
				clock.Advance(wait - time.Microsecond)
				if early := c.peek("k", cost); early.Allowed {
					r.Fatalf("%v: allowed a microsecond before RetryAfter, %v", l, wait)
				} else if got := early.Items[0].Results[0].RetryAfter; got != time.Microsecond {
					r.Fatalf("%v: RetryAfter is %v a microsecond before the first one ends", l, got)
				}
				clock.Advance(time.Microsecond)
				if !c.take("k", cost).Allowed {
					r.Fatalf("%v: denied at RetryAfter, %v", l, wait)
				}
			}
		})
	})
	s.each(t, retryOfEachCost)
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		c := one(t, store, l)
		most := l.Quota
		if l.Burst > 0 {
			most = l.Burst
		}
		if b := c.take("k", most+1); b.Allowed || b.Items[0].Results[0].RetryAfter != core.Never {
			t.Errorf("%v: a cost above all that fits: %+v", l, b)
		}
		if b := c.take("k", 0); !b.Allowed || b.Items[0].Results[0].ResetAfter != 0 {
			t.Errorf("%v: a cost of 0: %+v", l, b)
		}
		if b := c.take("k", most); !b.Allowed || b.Items[0].Results[0].Remaining != 0 {
			t.Errorf("%v: all that fits: %+v", l, b)
		}
		if b := c.take("k", 0); !b.Allowed {
			t.Errorf("%v: a cost of 0 at the limit: %+v", l, b)
		}
		clock.Advance(c.peek("k", 0).Items[0].Results[0].ResetAfter)
		if got := c.remaining("k"); got != most {
			t.Errorf("%v: %d left after ResetAfter, want %d", l, got, most)
		}
	})
}

// retryOfEachCost tests that RetryAfter is exact for each cost, with hits that were made one after
// another.
func retryOfEachCost(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
	most := l.Quota
	if l.Burst > 0 {
		most = l.Burst
	}
	for _, pause := range []time.Duration{l.Window / 10, l.Window / 4} {
		c := one(t, store, l)
		for range most {
			c.take("k", 1)
			clock.Advance(pause)
		}
		now := clock.Now()
		for cost := int64(1); cost <= most; cost++ {
			wait := c.peek("k", cost).Items[0].Results[0].RetryAfter
			if wait == 0 {
				continue
			}
			clock.Advance(wait - time.Microsecond)
			early := c.peek("k", cost).Allowed
			clock.Advance(time.Microsecond)
			if early || !c.peek("k", cost).Allowed {
				t.Errorf("%v, hits %v apart, cost %d: RetryAfter is %v; allowed a microsecond before %v", l, pause, cost, wait, early)
			}
			clock.Set(now)
		}
	}
}

// refunds tests that refunded hits are available again, once, and in no other window.
func (s *suite) refunds(t *testing.T) {
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		c := one(t, store, l)
		before := c.remaining("k")
		b := c.take("k", 2)
		c.refund(b)
		if got := c.remaining("k"); got != before {
			t.Errorf("%v: %d left after the refund, want %d", l, got, before)
		}
		c.refund(b) // twice: not above the quota all the same
		if got := c.remaining("k"); got > before {
			t.Errorf("%v: %d left after a second refund: more than there ever was", l, got)
		}

		old := c.take("old", 2)
		clock.Advance(3 * l.Window)
		c.take("old", 1)
		left := c.remaining("old")
		c.refund(old)
		if got := c.remaining("old"); got != left {
			t.Errorf("%v: %d left after a refund into a window that has gone, want %d", l, got, left)
		}

		// A window later the hits of a sliding window still count, and can be refunded; those of
		// the others are gone.
		before = c.remaining("later")
		first := c.take("later", 2)
		clock.Advance(l.Window + l.Precision)
		c.take("later", 1)
		c.refund(first)
		if got := c.remaining("later"); got != before-1 {
			t.Errorf("%v: %d left after a take, and a refund of one in the window before, want %d", l, got, before-1)
		}

		before = c.remaining("never")
		c.refund(c.batch(true, c.item(0, "never", 1)))
		if got := c.remaining("never"); got != before {
			t.Errorf("%v: %d left of a key that was only looked at, want %d", l, got, before)
		}
	})
}

// clockSteps tests that no step of the clock denies a key for longer than the limit itself can. The
// wait is counted from the stored time if that is less than one window ahead of the clock, and
// otherwise from the clock's time.
func (s *suite) clockSteps(t *testing.T) {
	if s.keepsTime {
		return
	}
	s.each(t, func(t *testing.T, l core.Limit, store core.Store, clock *Clock) {
		for _, step := range []time.Duration{time.Hour, -time.Hour, l.Window / 2, -l.Window / 2} {
			clock.Set(start())
			c := one(t, store, l)
			for c.take("k", 1).Allowed {
			}
			clock.Advance(step)
			longest := map[core.Algorithm]time.Duration{
				core.SlidingWindow:  2 * l.Window,
				core.FixedWindow:    l.Window,
				core.BucketedWindow: l.Window + l.Precision,
				core.SlidingLog:     l.Window,
				core.TokenBucket:    l.Window,
			}[l.Algorithm] + l.Lockout.First
			if -l.Window < step && step < 0 {
				longest -= step // what is stored is believed
			}
			waited := time.Duration(0)
			for {
				b := c.take("k", 1)
				if b.Allowed {
					break
				}
				wait := b.Items[0].Results[0].RetryAfter
				if waited += wait; waited > longest || wait <= 0 {
					t.Errorf("%v: locked out for %v after a step of %v, at most %v", l, waited, step, longest)
					break
				}
				clock.Advance(wait)
			}
		}
	})
}
