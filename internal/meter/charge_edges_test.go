package meter

import (
	"slices"
	"testing"
	"time"
)

// The end of a window belongs to the next one: a hit from then is not taken out of it.
func TestARefundOfTheNextWindowsFirstInstant(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: Day, Algorithm: Calendar, Zone: time.UTC})
	w := make([]uint64, cellWords)
	m.Charge(w, now0, 3)
	c := loadCell(w)
	for _, row := range []struct {
		at   int64
		want uint32
	}{{c.t - 1, 3}, {c.t, 2}, {c.end() - 1, 2}, {c.end(), 3}} {
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
	high.Charge(charged, now0+10*hour, 100)
	for _, asks := range []Meter{m, high} {
		w := slices.Clone(charged)
		asks.Advance(w, now0)
		got := loadCell(w)
		if want := wideMul(hour, 100); got.debt(now0) != want {
			t.Errorf("quota %d: a debt of %v, want %v", asks.Quota(), got.debt(now0), want)
		}
	}
}
