package meter

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func resetOf(m *Meter, w []uint64, now int64) int64 {
	_, reset, _ := m.Outlook(w, now)
	return reset
}

// What a decision reports beside its verdict agrees with what the limit admits
// and with the waits for single costs, of every algorithm, also after the quota
// has been changed and for a clock that is behind the state.
func TestTheOutlookAgreesWithVerdictsAndWaits(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	for round := range 20_000 {
		limit := randomLimit(r)
		m := New(limit)
		var w []uint64
		if !m.Grows() {
			w = make([]uint64, m.FixedWords())
		}
		now := int64(now0)
		for range r.IntN(8) {
			switch now += r.Int64N(1 + m.window*int64(1+r.IntN(3))/2); r.IntN(12) {
			case 0:
				now -= m.window / 3
			case 1: // another quota from here on
				limit.Quota = min(r.Int64N(2*limit.Quota+1), MaxCount)
				limit.Capacity = limit.Quota
				m = New(limit)
			}
			m.Advance(w, now)
			cost := 1 + r.Int64N(max(1, m.capacity))
			if r.IntN(2) == 0 {
				cost = 1
			}
			if m.Allows(w, now, cost) {
				longer := make([]uint64, max(len(w), m.Words(w, cost)))
				m.Grow(longer, w)
				w = longer
				m.Charge(w, now, cost)
			}
		}
		m.Advance(w, now)
		left, reset, more := m.Outlook(w, now)
		fail := func(what string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %+v, state %v at %d: %d left, reset %d, more %d: %s", seed, round, limit, w, now, left, reset, more, fmt.Sprintf(what, args...))
		}
		if !m.Allows(w, now, left) || left < m.capacity && m.Allows(w, now, left+1) || left != m.Remaining(w, now) {
			fail("it admits %d: %t, %d: %t, remaining is %d", left, m.Allows(w, now, left), left+1, m.Allows(w, now, left+1), m.Remaining(w, now))
		}
		kind := "some left"
		switch {
		case limit.Quota == 0:
			kind = "quota 0"
			if reset != 0 || more != 0 {
				fail("want no waits")
			}
		case left == m.capacity:
			kind = "all left"
			if reset != 0 || more != 0 {
				fail("want no waits")
			}
		default:
			if left == 0 {
				kind = "none left"
			}
			if want := m.Wait(w, now, m.capacity); reset != want {
				fail("the wait for all is %d", want)
			}
			if want := m.Wait(w, now, left+1); more != want {
				fail("the wait for %d is %d", left+1, want)
			}
		}
		seen[fmt.Sprint(m.algorithm, " ", kind)]++
		for _, cost := range []int64{0, 1, left, left + 1, m.capacity, m.capacity + 1} {
			var got Result
			ok := m.Allows(w, now, cost)
			if m.Report(&got, w, now, cost, ok); !ok && got.RetryAfter != Duration(m.Wait(w, now, cost)) || ok && got.RetryAfter != 0 {
				fail("cost %d, allowed %t: RetryAfter is %v, and the wait %d", cost, ok, got.RetryAfter, m.Wait(w, now, cost))
			}
		}
	}
	for _, a := range countHits {
		for _, kind := range []string{"some left", "none left", "all left", "quota 0"} {
			if name := fmt.Sprint(a, " ", kind); seen[name] == 0 && (a != Lockout || kind != "quota 0") {
				t.Errorf("seed %d: no state of %s has been met", seed, name)
			}
		}
	}
}

func randomLimit(r *rand.Rand) Limit {
	l := Limit{Quota: 1 + r.Int64N(6), Window: hour, Algorithm: countHits[r.IntN(len(countHits))]}
	if r.IntN(3) == 0 {
		l.Window = minWindow + r.Int64N(1000)
	}
	if r.IntN(4) == 0 && l.Algorithm != SlidingLog {
		l.Quota = 1 + r.Int64N(MaxCount)
		l.Window = maxWindow
	}
	l.Capacity = l.Quota
	switch l.Algorithm {
	case BucketedWindow:
		l.Precision = l.Window / []int64{1, 2, 5, 6}[r.IntN(4)]
		l.Window -= l.Window % l.Precision
	case TokenBucket:
		if r.IntN(2) == 0 {
			l.Capacity = 1 + r.Int64N(2*l.Quota)
		}
	case Lockout:
		l.Waits = Waits{First: minute, Longest: hour, Factor: 2, Decay: hour}
	case FixedWindow, SlidingWindow:
		l.Aligned = r.IntN(2) == 0
	case Calendar:
		l.Window, l.Zone = []int64{Day, Week, Month}[r.IntN(3)], randomZone(r)
	}
	return l
}
