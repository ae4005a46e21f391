package storetest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// mostWithSkew is the most hits that a window of the limit's length can hold, by a clock that is
// right, if the clocks of the instances differ by less than one window:
//
//	sliding_log, bucketed_window     2 × quota
//	sliding_window, fixed_window     3 × quota
//	token_bucket                     burst + 2 × quota
//	fixed_window with a lockout      twice what it is without
func mostWithSkew(l core.Limit) int64 {
	alone := l.WorstCase()
	switch {
	case l.Lockout != core.Lockout{}, l.Algorithm == core.SlidingLog, l.Algorithm == core.BucketedWindow:
		return 2 * alone
	default:
		return alone + l.Quota
	}
}

// skew takes as much as it can through two instances whose clocks differ, in random turns. A window
// that is shorter by the difference of the clocks never holds more than without one:
// core.Limit.WorstCase says how much. A whole window never holds more than mostWithSkew.
func skew(t *testing.T, newStores SharedFactory) {
	for _, l := range variants() {
		t.Run(l.Name, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			clocks := []*Clock{NewClock(start()), NewClock(start())}
			stores := newStores(t, clocks[0].Now, clocks[1].Now)
			window := l.Window.Microseconds()
			for round := range 12 {
				apart := []int64{1, window / 200, window / 20, window / 4, window / 2, window - 1}[round%6]
				limiter := uniqueName()
				var pair []*counter
				for _, s := range stores {
					rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
					bound, err := s.Open(limiter, rules)
					if err != nil {
						t.Fatal(err)
					}
					pair = append(pair, &counter{t, bound, rules, s.Guarantees().Ops})
				}
				now := start().UnixMicro() + r.Int64N(window)
				var hits []int64 // by a clock that is right
				for range 150 {
					clocks[0].Set(time.UnixMicro(now))
					clocks[1].Set(time.UnixMicro(now + apart))
					who := pair[r.IntN(2)]
					for who.take("k", 1).Allowed {
						hits = append(hits, now)
					}
					now += r.Int64N(1 + window/int64(1+r.IntN(60)))
				}
				if n := mostWithin(hits, window-apart); n > l.WorstCase() {
					t.Errorf("seed %d, clocks %d µs apart: %d hits in a window that is shorter by that, want at most %d", seed, apart, n, l.WorstCase())
				}
				if n := mostWithin(hits, window); n > mostWithSkew(l) {
					t.Errorf("seed %d, clocks %d µs apart: %d hits in a window, want at most %d", seed, apart, n, mostWithSkew(l))
				}
			}
		})
	}
}

// mostWithin returns the most hits that are in a window of this length, wherever it begins.
func mostWithin(hits []int64, window int64) int64 {
	most, from := 0, 0
	for to, at := range hits {
		for hits[from] <= at-window {
			from++
		}
		most = max(most, to-from+1)
	}
	return int64(most)
}

// skewedWaits tests that a wait is exact by the clock of the instance that returns it, and that a
// denial changes nothing for the other instance.
func skewedWaits(t *testing.T, newStores SharedFactory) {
	for _, l := range variants() {
		t.Run(l.Name, func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			clocks := []*Clock{NewClock(start()), NewClock(start())}
			stores := newStores(t, clocks[0].Now, clocks[1].Now)
			for range 20 {
				limiter := uniqueName()
				var pair []*counter
				for _, s := range stores {
					rules := []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}
					bound, err := s.Open(limiter, rules)
					if err != nil {
						t.Fatal(err)
					}
					pair = append(pair, &counter{t, bound, rules, s.Guarantees().Ops})
				}
				behind, ahead := pair[0], pair[1]
				clocks[0].Set(start())
				clocks[1].Set(start().Add(time.Duration(r.Int64N(l.Window.Microseconds())) * time.Microsecond))
				for range r.IntN(4) { // some hits of both, then all that is left
					pair[r.IntN(2)].take("k", 1)
					moreLater(t, behind, clocks[0])
					before := behind.remaining("k")
					if b := behind.take("k", 1); b.Allowed {
						behind.refund(b)
					}
					if after := behind.remaining("k"); after != before {
						t.Fatalf("seed %d: %d remain after a refund, %d before", seed, after, before)
					}
				}
				if r.IntN(2) == 0 { // the window before counts too
					ahead.take("k", 3)
					clocks[1].Advance(l.Window)
					clocks[0].Set(clocks[1].Now().Add(-time.Duration(r.Int64N(l.Window.Microseconds())) * time.Microsecond))
					ahead.take("k", 1)
					moreLater(t, behind, clocks[0])
				}
				for ahead.take("k", 1).Allowed {
				}
				before := ahead.peek("k", 1).Items[0].Results
				denied := behind.take("k", 1)
				if denied.Allowed {
					t.Fatalf("seed %d: the clock that is behind is allowed what the other is denied", seed)
				}
				if after := ahead.peek("k", 1).Items[0].Results; !slices.Equal(before, after) {
					t.Fatalf("seed %d: a denial by the clock that is behind changed %+v to %+v", seed, before, after)
				}
				clocks[0].Advance(denied.Items[0].Results[0].RetryAfter - time.Microsecond)
				if behind.peek("k", 1).Allowed {
					t.Fatalf("seed %d: allowed a microsecond before RetryAfter, %v", seed, denied.Items[0].Results[0].RetryAfter)
				}
				clocks[0].Advance(time.Microsecond)
				b := behind.take("k", 1)
				if !b.Allowed {
					t.Fatalf("seed %d: denied at RetryAfter, %v", seed, denied.Items[0].Results[0].RetryAfter)
				}
				// A refund finds the hit, whichever clock was used for its charge.
				left := behind.remaining("k")
				behind.refund(b)
				if got := behind.remaining("k"); l.Lockout == (core.Lockout{}) && got != left+1 {
					t.Fatalf("seed %d: %d left after a refund, %d before", seed, got, left)
				}
			}
		})
	}
}

// moreLater tests that MoreAfter is exact: nothing more remains a microsecond earlier.
func moreLater(t *testing.T, c *counter, clock *Clock) {
	t.Helper()
	now := clock.Now()
	defer func() { clock.Set(now) }()
	r := c.peek("k", 1).Items[0].Results[0]
	if r.MoreAfter == 0 {
		return
	}
	clock.Advance(r.MoreAfter - time.Microsecond)
	if early := c.remaining("k"); early != r.Remaining {
		t.Fatalf("%d remain a microsecond before MoreAfter, %v, and %d did", early, r.MoreAfter, r.Remaining)
	}
	clock.Advance(time.Microsecond)
	if later := c.remaining("k"); later <= r.Remaining {
		t.Fatalf("%d remain at MoreAfter, %v, and %d did", later, r.MoreAfter, r.Remaining)
	}
}
