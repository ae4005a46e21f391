package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// longestBurst returns a burst that takes 100 years to fill, or as long as the
// store keeps anything, at one hit for each 366th of the longest window.
func (s *suite) longestBurst() int64 {
	if s.keeps > 0 {
		return 366
	}
	return 36_500
}

// extremes tests the ends of the ranges: nothing overflows, and no hit is
// admitted beyond the limit.
func (s *suite) extremes(t *testing.T) {
	const most = core.MaxQuota
	longest := s.longestWindow()
	for _, l := range []core.Limit{
		{Quota: most, Window: longest},
		{Quota: most, Window: longest, Aligned: true},
		{Quota: most, Window: longest, Algorithm: core.FixedWindow},
		{Quota: most, Window: longest, Algorithm: core.BucketedWindow, Precision: longest / 366},
		{Quota: core.MaxLogQuota, Window: longest, Algorithm: core.SlidingLog},
		{Quota: most, Window: longest, Algorithm: core.TokenBucket},
		{Quota: 1, Window: longest / 366, Algorithm: core.TokenBucket, Burst: s.longestBurst()},
		{Quota: most, Window: core.MinWindow},
		{Quota: most, Window: core.MinWindow, Algorithm: core.TokenBucket},
		{Quota: 3, Window: core.MinWindow, Algorithm: core.TokenBucket, Burst: most},
	} {
		t.Run(l.String(), func(t *testing.T) {
			clock := NewClock(start())
			c := one(t, s.new(t, clock.Now), l)
			all := max(l.Quota, l.Burst)
			for _, cost := range []int64{math.MaxInt64, math.MaxInt64 - 1, all + 1} {
				if c.take("k", cost).Allowed {
					t.Fatalf("cost %d is allowed", cost)
				}
			}
			half := all / 2
			for _, cost := range []int64{half, all - half - 1, 1} {
				if b := c.take("k", cost); !b.Allowed {
					t.Fatalf("cost %d is denied: %+v", cost, b.Items[0].Results)
				}
			}
			b := c.take("k", 1)
			if b.Allowed {
				t.Fatal("one above the quota is allowed")
			}
			waitedOut(t, c, clock, b.Items[0].Results[0].RetryAfter, all)
		})
	}
	t.Run("charges", s.extremeCharges)
	t.Run("quota 0", func(t *testing.T) {
		for _, l := range variants() {
			l.Quota, l.Burst = 0, 0
			c := one(t, s.new(t, nil), l)
			if b := c.take("k", 1); b.Allowed || b.Items[0].Results[0].RetryAfter != core.Never {
				t.Errorf("%v: %+v", l, b.Items[0].Results)
			}
			if b := c.charge(c.item(0, "charged", 3)); !b.Allowed || b.Items[0].Results[0].Remaining != 0 {
				t.Errorf("%v: charged: %+v", l, b.Items[0].Results)
			}
		}
	})
}

// waitedOut tests that the key k is denied until a wait is over and no longer, and that all is
// left after its reset.
func waitedOut(t *testing.T, c *counter, clock *Clock, wait time.Duration, all int64) {
	t.Helper()
	clock.Advance(wait - time.Microsecond)
	if c.peek("k", 1).Allowed {
		t.Error("allowed a microsecond early")
	}
	clock.Advance(time.Microsecond)
	if !c.peek("k", 1).Allowed {
		t.Error("denied at RetryAfter")
	}
	clock.Advance(c.peek("k", 0).Items[0].Results[0].ResetAfter)
	if got := c.remaining("k"); got != all {
		t.Errorf("%d left after ResetAfter, want %d", got, all)
	}
}

// extremeCharges tests charges far above the quota, of the longest windows and of
// the shortest: nothing overflows, and all of it is paid off by waiting.
func (s *suite) extremeCharges(t *testing.T) {
	longest := s.longestWindow()
	for _, l := range []core.Limit{
		{Quota: 5, Window: longest},
		{Quota: 5, Window: longest, Aligned: true},
		{Quota: 5, Window: longest, Algorithm: core.FixedWindow},
		{Quota: 5, Window: longest, Algorithm: core.FixedWindow, Aligned: true},
		{Quota: 5, Window: longest, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: longest / 2, Factor: 2, Max: longest, Decay: longest}},
		{Quota: 5, Window: longest, Algorithm: core.BucketedWindow, Precision: longest / 366},
		{Quota: 5, Window: longest, Algorithm: core.SlidingLog},
		{Quota: core.MaxLogQuota, Window: longest, Algorithm: core.SlidingLog},
		{Quota: 5, Window: longest / 4, Algorithm: core.TokenBucket},
		{Quota: 5, Window: longest / 4, Algorithm: core.TokenBucket, Burst: 3},
		{Quota: core.MaxQuota, Window: longest / 4, Algorithm: core.TokenBucket},
		{Quota: core.MaxQuota, Window: longest},
		{Quota: 5, Window: core.MinWindow},
		{Quota: 5, Window: core.MinWindow, Algorithm: core.TokenBucket, Burst: 3},
	} {
		t.Run(l.String(), func(t *testing.T) {
			clock := NewClock(start())
			c := one(t, s.new(t, clock.Now), l)
			all := l.Quota
			if l.Burst > 0 {
				all = l.Burst
			}
			for _, cost := range []int64{1, math.MaxInt64} { // the second beside a few hits
				if b := c.charge(c.item(0, "few", cost)); !b.Allowed {
					t.Fatalf("a charge of %d is denied", cost)
				}
			}
			if got := c.remaining("few"); got != 0 {
				t.Errorf("%d left after a charge of %d beside one hit", got, int64(math.MaxInt64))
			}
			for _, cost := range []int64{core.MaxQuota, core.MaxQuota, math.MaxInt64, 1} {
				b := c.charge(c.item(0, "k", cost))
				r := b.Items[0].Results[0]
				if !b.Allowed || !r.Allowed || r.Remaining != 0 || r.RetryAfter != 0 || r.ResetAfter <= 0 || r.MoreAfter <= 0 || r.MoreAfter > r.ResetAfter {
					t.Fatalf("a charge of %d: %v, %+v", cost, b.Allowed, r)
				}
			}
			b := c.take("k", 1)
			r := b.Items[0].Results[0]
			if b.Allowed || r.RetryAfter <= 0 || r.RetryAfter > 3*longest {
				t.Fatalf("a hit after the charges: allowed %v, %+v", b.Allowed, r)
			}
			waitedOut(t, c, clock, r.RetryAfter, all)
		})
	}
}
