package storetest

import (
	"math"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
			clock.Advance(r.RetryAfter - time.Microsecond)
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
}
