package meter

import "testing"

// The burst of a quota does not depend on the quotas in between, however they are
// rounded.
func TestABurstIsInProportionToTheLimit(t *testing.T) {
	for _, l := range []Limit{
		{Quota: 3, Capacity: 7, Window: hour, Algorithm: TokenBucket},
		{Quota: 1, Capacity: 36_500, Window: hour, Algorithm: TokenBucket},
		{Quota: 7, Capacity: 3, Window: hour, Algorithm: TokenBucket},
		{Quota: 0, Capacity: 0, Window: hour, Algorithm: TokenBucket},
		{Quota: 5, Capacity: 5, Window: hour, Algorithm: SlidingWindow},
	} {
		m := New(l)
		quotas := []int64{0, 1, 2, 3, 7, 10, MaxCount}
		for _, first := range quotas {
			for _, second := range quotas {
				direct, between := m.With(second), m.With(first)
				if got := between.With(second); got != direct {
					t.Errorf("%+v: with a quota of %d by one of %d: %+v, want %+v", l, second, first, got, direct)
				}
			}
		}
		if got := m.With(l.Quota); got != m {
			t.Errorf("%+v: with its own quota: %+v", l, got)
		}
	}
}

// A decision with a quota of its own leaves the debt of a token bucket as it is,
// also if the burst of that quota is rounded.
func TestALookWithAnotherQuotaChangesNothing(t *testing.T) {
	m := New(Limit{Quota: 1, Capacity: 7, Window: hour, Algorithm: TokenBucket})
	w := make([]uint64, cellWords)
	m.Charge(w, now0, 6)
	before := [2]uint64{w[0], w[1]}
	for _, quota := range []int64{1, 2, 1000, MaxCount} {
		other := m.With(quota)
		if other.Advance(w, now0); [2]uint64{w[0], w[1]} != before {
			t.Fatalf("a look with a quota of %d has changed the state", quota)
		}
	}
	if left := m.Remaining(w, now0); left != 1 {
		t.Errorf("%d left, want 1", left)
	}
}

// A charge to a token bucket with a quota of 0 and a burst changes nothing.
func TestAChargeToABucketWithoutAQuota(t *testing.T) {
	m := New(Limit{Quota: 0, Capacity: 3, Window: hour, Algorithm: TokenBucket})
	for _, cost := range []int64{1, 3, 4, MaxCount} {
		w := make([]uint64, cellWords)
		if m.Charge(w, now0, cost); w[0] != 0 || w[1] != 0 {
			t.Errorf("a charge of %d: state %v", cost, w)
		}
	}
}
