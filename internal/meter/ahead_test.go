package meter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A clock that is behind a state by less than one window decides at the state's
// time, counts waits from its own, charges at the state's time, and changes
// nothing by looking.
func TestADecisionIsMadeAtTheStoredTime(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const start = now0
	meters := everyAlgorithm(hour)
	for round := range 2000 {
		m := &meters[round%len(meters)]
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %v: %s", seed, round, m.algorithm, fmt.Sprintf(format, args...))
		}
		var w []uint64
		if !m.Grows() {
			w = make([]uint64, m.FixedWords())
		}
		now := int64(start)
		charge := func(w []uint64, now int64) []uint64 {
			longer := make([]uint64, max(len(w), m.Words(w, 1)))
			m.Grow(longer, w)
			m.Charge(longer, now, 1)
			return longer
		}
		for range 1 + r.IntN(6) {
			now += r.Int64N(m.window * 2 / 3)
			m.Advance(w, now)
			if m.Allows(w, now, 1) {
				w = charge(w, now)
			}
		}
		stored := now
		if m.algorithm != TokenBucket {
			stored = m.At(w, 0)
		}
		latest := stored // of the times in the state
		if m.algorithm == Lockout {
			c := loadLockout(w)
			latest = max(stored, c.until-c.last(m))
		}
		if latest-stored >= m.window-1 {
			continue
		}
		behind := stored - 1 - r.Int64N(m.window-1-(latest-stored))
		there, here := slices.Clone(w), slices.Clone(w)
		m.Advance(there, stored)
		m.Advance(here, behind)
		if m.Far(w, behind) {
			fail("%d µs ahead is far", stored-behind)
		}
		if m.algorithm != TokenBucket { // whose debt is only larger
			if a, b := m.Remaining(there, stored), m.Remaining(here, behind); a != b {
				fail("%d remain, and %d at the stored time", b, a)
			}
			for cost := range m.capacity {
				if a, b := m.Wait(there, stored, cost+1), m.Wait(here, behind, cost+1); a > 0 && a+stored != b+behind || (a == 0) != (b == 0) {
					fail("cost %d: the wait is %d, and %d at the stored time, %d µs later", cost+1, b, a, stored-behind)
				}
			}
			if a, b := m.At(there, stored), m.At(here, behind); a != b {
				fail("decides at %d, and at %d at the stored time", b, a)
			}
			if a, b := charge(there, stored), charge(here, behind); fmt.Sprint(a) != fmt.Sprint(b) {
				fail("a charge makes %v, and %v at the stored time", b, a)
			}
		}
		m.Advance(here, stored)
		if a, b := m.Remaining(there, stored), m.Remaining(here, stored); a != b {
			fail("%d remain after a look by a clock that is behind, and %d before", b, a)
		}
		if m.algorithm != Lockout && m.algorithm != TokenBucket && !m.Far(w, stored-m.window) {
			fail("a whole window ahead is not far")
		}
	}
}

// The whole burst, and twice the burst, which is the most that a charge leaves, is owed in full
// if it was charged less than a window ahead. A whole window ahead, no more than the burst
// is owed. In 64 bits and in 128.
func TestAFullBucketAheadOfTheClock(t *testing.T) {
	const charged = now0
	for _, twice := range []bool{false, true} {
		fullBucketAhead(t, charged, twice)
	}
}

func fullBucketAhead(t *testing.T, charged int64, twice bool) {
	t.Helper()
	for _, l := range []Limit{
		{Quota: 5, Capacity: 5, Window: hour, Algorithm: TokenBucket},
		{Quota: 5, Capacity: 15, Window: hour, Algorithm: TokenBucket},
		{Quota: MaxCount, Capacity: MaxCount, Window: maxWindow, Algorithm: TokenBucket},
	} {
		m := New(l)
		full := make([]uint64, cellWords)
		m.Charge(full, charged, m.capacity)
		if twice {
			m.Charge(full, charged, m.capacity)
		}
		burst := make([]uint64, cellWords)
		m.Charge(burst, charged, m.capacity)
		for _, ahead := range []int64{1, m.window / 2, m.window - 1} {
			w := slices.Clone(full)
			if m.Advance(w, charged-ahead); m.Far(full, charged-ahead) || !slices.Equal(w, full) {
				t.Errorf("%v: a debt %d µs ahead is moved back", l, ahead)
			}
		}
		w := slices.Clone(full)
		if m.Advance(w, charged-m.window); !m.Far(full, charged-m.window) || resetOf(&m, w, charged-m.window) != resetOf(&m, burst, charged) {
			t.Errorf("%v: a debt a window ahead is owed for %d µs, want %d", l, resetOf(&m, w, charged-m.window), resetOf(&m, burst, charged))
		}
	}
}

// Buckets without hits follow the clock, also back.
func TestEmptyBucketsFollowTheClock(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: hour, Precision: minute, Algorithm: BucketedWindow})
	w := make([]uint64, m.Words(nil, 1))
	const later, before = now0 + 10*minute, now0 - 10*minute
	for _, at := range []int64{now0, later} {
		m.Advance(w, at)
		m.Charge(w, at, 1)
	}
	for _, at := range []int64{now0, later} {
		m.Refund(w, later, at, 0, 1)
	}
	m.Advance(w, before)
	m.Charge(w, before, 1)
	if got, want := m.Expiry(w), floorTo(before, minute)+hour+minute; got != want || m.At(w, before) != before {
		t.Errorf("a hit of the time %d counts until %d, want %d", before, got, want)
	}
}
