package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A clock that is behind a state by less than one window decides at the state's
// time, counts waits from its own, charges at the state's time, and changes
// nothing by looking.
func TestADecisionIsMadeAtTheStoredTime(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	const start = 1_764_000_123_456_789
	ids, meters := codecRule(time.Hour)
	for round := range 2000 {
		m := &meters[round%len(meters)]
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %v: %s", seed, round, ids[round%len(meters)], fmt.Sprintf(format, args...))
		}
		var w []uint64
		if !m.grows() {
			w = make([]uint64, m.fixedWords())
		}
		now := int64(start)
		charge := func(w []uint64, now int64) []uint64 {
			longer := make([]uint64, max(len(w), m.words(w, 1)))
			m.grow(longer, w)
			m.charge(longer, now, 1)
			return longer
		}
		for range 1 + r.IntN(6) {
			now += r.Int64N(m.window * 2 / 3)
			m.advance(w, now)
			if m.admits(w, now, 1) {
				w = charge(w, now)
			}
		}
		stored := now
		if m.algorithm != TokenBucket {
			stored = m.at(w, 0)
		}
		latest := stored // of the times in the state
		if m.algorithm == lockoutWindow {
			c := loadLockout(w)
			latest = max(stored, c.until-c.last(m))
		}
		if latest-stored >= m.window-1 {
			continue
		}
		behind := stored - 1 - r.Int64N(m.window-1-(latest-stored))
		there, here := slices.Clone(w), slices.Clone(w)
		m.advance(there, stored)
		m.advance(here, behind)
		if m.far(w, behind) {
			fail("%d µs ahead is far", stored-behind)
		}
		if m.algorithm != TokenBucket { // whose debt is only larger
			if a, b := m.remaining(there, stored), m.remaining(here, behind); a != b {
				fail("%d remain, and %d at the stored time", b, a)
			}
			for cost := range m.capacity {
				if a, b := m.wait(there, stored, cost+1), m.wait(here, behind, cost+1); a > 0 && a+stored != b+behind || (a == 0) != (b == 0) {
					fail("cost %d: the wait is %d, and %d at the stored time, %d µs later", cost+1, b, a, stored-behind)
				}
			}
			if a, b := m.at(there, stored), m.at(here, behind); a != b {
				fail("decides at %d, and at %d at the stored time", b, a)
			}
			if a, b := charge(there, stored), charge(here, behind); fmt.Sprint(a) != fmt.Sprint(b) {
				fail("a charge makes %v, and %v at the stored time", b, a)
			}
		}
		m.advance(here, stored)
		if a, b := m.remaining(there, stored), m.remaining(here, stored); a != b {
			fail("%d remain after a look by a clock that is behind, and %d before", b, a)
		}
		if m.algorithm != lockoutWindow && m.algorithm != TokenBucket && !m.far(w, stored-m.window) {
			fail("a whole window ahead is not far")
		}
	}
}

// The whole burst, charged less than a window ahead, is owed in full; a whole
// window ahead it is moved back. In 64 bits and in 128.
func TestAFullBucketAheadOfTheClock(t *testing.T) {
	const charged = 1_764_000_123_456_789
	for _, l := range []Limit{
		{Quota: 5, Window: time.Hour, Algorithm: TokenBucket},
		{Quota: 5, Window: time.Hour, Algorithm: TokenBucket, Burst: 15},
		{Quota: MaxQuota, Window: MaxWindow, Algorithm: TokenBucket},
	} {
		m := newMeter(l)
		full := make([]uint64, cellWords)
		m.charge(full, charged, m.capacity)
		for _, ahead := range []int64{1, m.window / 2, m.window - 1} {
			w := slices.Clone(full)
			if m.advance(w, charged-ahead); m.far(full, charged-ahead) || !slices.Equal(w, full) {
				t.Errorf("%v: a debt %d µs ahead is moved back", l, ahead)
			}
		}
		w := slices.Clone(full)
		if m.advance(w, charged-m.window); !m.far(full, charged-m.window) || resetOf(&m, w, charged-m.window) != resetOf(&m, full, charged) {
			t.Errorf("%v: a debt a window ahead is owed for %d µs, want %d", l, resetOf(&m, w, charged-m.window), resetOf(&m, full, charged))
		}
	}
}
