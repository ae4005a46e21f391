package core

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func resetOf(m *meter, w []uint64, now int64) int64 {
	_, reset, _ := m.outlook(w, now)
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
		m := newMeter(limit)
		var w []uint64
		if !m.grows() {
			w = make([]uint64, m.fixedWords())
		}
		now := int64(1_764_000_123_456_789)
		for range r.IntN(8) {
			switch now += r.Int64N(1 + m.window*int64(1+r.IntN(3))/2); r.IntN(12) {
			case 0:
				now -= m.window / 3
			case 1: // another quota from here on
				limit.Quota, limit.Burst = min(r.Int64N(2*limit.Quota+1), MaxQuota), 0
				m = newMeter(limit)
			}
			m.advance(w, now)
			cost := 1 + r.Int64N(max(1, m.capacity))
			if r.IntN(2) == 0 {
				cost = 1
			}
			if m.admits(w, now, cost) {
				longer := make([]uint64, max(len(w), m.words(w, cost)))
				m.grow(longer, w)
				w = longer
				m.charge(w, now, cost)
			}
		}
		m.advance(w, now)
		left, reset, more := m.outlook(w, now)
		fail := func(what string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, round %d, %+v, state %v at %d: %d left, reset %d, more %d: %s", seed, round, limit, w, now, left, reset, more, fmt.Sprintf(what, args...))
		}
		if !m.admits(w, now, left) || left < m.capacity && m.admits(w, now, left+1) || left != m.remaining(w, now) {
			fail("it admits %d: %t, %d: %t, remaining is %d", left, m.admits(w, now, left), left+1, m.admits(w, now, left+1), m.remaining(w, now))
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
			if want := m.wait(w, now, m.capacity); reset != want {
				fail("the wait for all is %d", want)
			}
			if want := m.wait(w, now, left+1); more != want {
				fail("the wait for %d is %d", left+1, want)
			}
		}
		seen[fmt.Sprint(m.algorithm, " ", kind)]++
		for _, cost := range []int64{0, 1, left, left + 1, m.capacity, m.capacity + 1} {
			var got Result
			ok := m.admits(w, now, cost)
			if report(&got, &m, w, now, cost, ok); !ok && got.RetryAfter != micros(m.wait(w, now, cost)) || ok && got.RetryAfter != 0 {
				fail("cost %d, allowed %t: RetryAfter is %v, and the wait %d", cost, ok, got.RetryAfter, m.wait(w, now, cost))
			}
		}
	}
	for a := SlidingWindow; a <= lockoutWindow; a++ {
		for _, kind := range []string{"some left", "none left", "all left", "quota 0"} {
			if name := fmt.Sprint(a, " ", kind); seen[name] == 0 && (a != lockoutWindow || kind != "quota 0") {
				t.Errorf("seed %d: no state of %s has been met", seed, name)
			}
		}
	}
}

func randomLimit(r *rand.Rand) Limit {
	l := Limit{Quota: 1 + r.Int64N(6), Window: time.Hour, Algorithm: Algorithm(r.IntN(int(lockoutWindow)))}
	if r.IntN(3) == 0 {
		l.Window = MinWindow + time.Duration(r.Int64N(1000))*time.Microsecond
	}
	if r.IntN(4) == 0 && l.Algorithm != SlidingLog {
		l.Quota = 1 + r.Int64N(MaxQuota)
		l.Window = MaxWindow
	}
	switch {
	case l.Algorithm == BucketedWindow:
		l.Precision = l.Window / time.Duration([]int{1, 2, 5, 6}[r.IntN(4)])
		l.Window -= l.Window % l.Precision
	case l.Algorithm == TokenBucket && r.IntN(2) == 0:
		l.Burst = 1 + r.Int64N(2*l.Quota)
	case l.Algorithm == FixedWindow && r.IntN(2) == 0:
		l.Lockout = Lockout{First: time.Minute}
	case l.Algorithm != SlidingLog && l.Algorithm != TokenBucket:
		l.Aligned = r.IntN(2) == 0
	}
	return l
}
