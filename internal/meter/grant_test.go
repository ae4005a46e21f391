package meter

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A grant gives back exactly as many hits as it says, up to the whole quota, and a key
// has no fewer left at any later time than it would have had without it.
func TestAGrantIsExact(t *testing.T) {
	walk(t, 4000, func(fail func(string, ...any), m *Meter, p *plain, w []uint64, now int64, r *rand.Rand) {
		n := r.Int64N(m.Capacity + 3)
		granted := slices.Clone(w)
		m.Advance(granted, now)
		m.Grant(granted, now, n)
		want := min(m.Capacity, p.remaining(now)+n)
		if m.Algorithm == Lockout {
			want = p.remaining(now)
		}
		if got := m.Remaining(granted, now); got != want {
			fail("%d remain after a grant of %d to %d, want %d", got, n, p.remaining(now), want)
		}
		if want == m.Capacity && m.Algorithm != Lockout {
			if _, reset, _ := m.Outlook(granted, now); reset != 0 {
				fail("the whole quota is there, and comes back in %d µs", reset)
			}
		}
		for range 3 {
			later := now + r.Int64N(2*m.Window)
			a, b := slices.Clone(w), slices.Clone(granted)
			m.Advance(a, later)
			m.Advance(b, later)
			if without, with := m.Remaining(a, later), m.Remaining(b, later); with < without {
				fail("%d µs after a grant of %d, %d remain, and %d without it", later-now, n, with, without)
			}
		}
	})
}

// A grant of part of the previous window's share takes no more hits of it than it must.
func TestAGrantKeepsWhatItNeedNotTake(t *testing.T) {
	m := New(Limit{Algorithm: SlidingWindow, Quota: 100, Capacity: 100, Window: 100})
	for _, row := range []struct {
		now, n     int64
		from, want cell
	}{
		{50, 3, cell{t: 1000, a: 5, b: 40}, cell{t: 1000, a: 2, b: 40}},
		{50, 5, cell{t: 1000, a: 5, b: 40}, cell{t: 1000, b: 40}},
		{50, 6, cell{t: 1000, a: 5, b: 40}, cell{t: 1000, b: 39}},
		{50, 15, cell{t: 1000, a: 5, b: 40}, cell{t: 1000, b: 21}},
		{50, 99, cell{t: 1000, a: 5, b: 40}, cell{t: 1000, b: 1}},
		{150, 10, cell{t: 1000, a: 40, b: 7}, cell{t: 1000, a: 21, b: 7}},
		{-30, 10, cell{t: 1000, a: 4, b: 40}, cell{t: 1000, b: 34}}, // a clock that is behind
		{100, 1, cell{t: 1000, a: 40}, cell{t: 1000, a: 39}},
		{50, 1, cell{}, cell{}},
	} {
		var w [cellWords]uint64
		row.from.store(w[:])
		m.Grant(w[:], 1000+row.now, row.n)
		if got := loadCell(w[:]); got != row.want {
			t.Errorf("%d granted at %d to %v: %v, want %v", row.n, row.now, row.from, got, row.want)
		}
	}
}

// A grant of nothing leaves the state as it is, also if a smaller burst has made its debt: the mark
// of a debt above the burst stays.
func TestAGrantOfNothingChangesNothing(t *testing.T) {
	m := New(Limit{Algorithm: TokenBucket, Quota: 10, Capacity: 20, Window: second})
	for _, n := range []int64{0, -1} {
		for _, before := range []cell{{}, {t: now0 + second, b: 10}, {t: now0 + second, a: 3 | overBurst, b: 10}} {
			var w [cellWords]uint64
			before.store(w[:])
			if m.Grant(w[:], now0, n); loadCell(w[:]) != before {
				t.Errorf("a grant of %d: %+v becomes %+v", n, before, loadCell(w[:]))
			}
		}
	}
}

// A grant adds no hits to the window before, which a clock that is set back would find there.
func TestAGrantOfASlidingWindowAddsNoHits(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: hour})
	for _, before := range []cell{{t: now0 - hour + 1, a: 1}, {t: now0 - hour + 1, a: 1, b: 5}, {t: now0, a: 0, b: 5}} {
		w := make([]uint64, cellWords)
		before.store(w)
		m.Grant(w, now0, 3)
		if after := loadCell(w); after.a > before.a || after.b > before.b {
			t.Errorf("%+v becomes %+v", before, after)
		}
	}
}

// The end of a window belongs to the next one: a hit from then is not taken out of it.
func TestARefundOfTheNextWindowsFirstInstant(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: Day, Algorithm: Calendar, Zone: time.UTC})
	w := make([]uint64, cellWords)
	m.Charge(new(Result), w, now0, 3)
	c := loadCell(w)
	for _, row := range []struct {
		at   int64
		want uint32
	}{{c.t - 1, 3}, {c.t, 2}, {c.end(&m) - 1, 2}, {c.end(&m), 3}} {
		c.store(w)
		m.Refund(w, now0, row.at, 0, 1)
		if got := loadCell(w).a; got != row.want {
			t.Errorf("a refund from %d µs after the start: %d hits, want %d", row.at-c.t, got, row.want)
		}
	}
}

// What a clock that was far ahead has charged is a full bucket of the quota that it was charged
// with, for whatever quota asks.
func TestAFarDebtIsAFullBucketOfItsOwnQuota(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: hour, Algorithm: TokenBucket})
	high := m.With(100)
	charged := make([]uint64, cellWords)
	high.Charge(new(Result), charged, now0+10*hour, 100)
	for _, asks := range []Meter{m, high} {
		w := slices.Clone(charged)
		asks.Advance(w, now0)
		got := loadCell(w)
		if want := wideMul(hour, 100); got.debt(now0) != want {
			t.Errorf("quota %d: a debt of %v, want %v", asks.Quota, got.debt(now0), want)
		}
	}
}

// The burst of a quota is at least 1. It does not depend on the quotas in between, however they are rounded.
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
				if got := between.With(second); got != direct || second > 0 && got.Capacity == 0 {
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
	m.Charge(new(Result), w, now0, 6)
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
		if m.Charge(new(Result), w, now0, cost); w[0] != 0 || w[1] != 0 {
			t.Errorf("a charge of %d: state %v", cost, w)
		}
	}
}
