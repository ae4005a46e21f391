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
			clock.Advance(b.Items[0].Results[0].RetryAfter - time.Microsecond)
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
