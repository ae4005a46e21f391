package meter

import (
	"math/rand/v2"
	"testing"
)

// The arithmetic of a token bucket in 64 bits agrees with that in 128 bits, for
// limits up to those at which the 64 bits end.
func TestATokenBucketIn64BitsAgreesWith128(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	fits := func(window, n int64) bool { return window <= (1<<61)/n }
	narrow := 0
	for range 3000 {
		l := Limit{Quota: 1 + r.Int64N(1<<r.IntN(31)), Window: 1000 + r.Int64N(1<<(10+r.IntN(34))), Algorithm: TokenBucket, Capacity: 1 + r.Int64N(1<<r.IntN(31))}
		if r.IntN(3) == 0 { // just at the end
			l.Quota, l.Capacity = MaxCount, MaxCount
			l.Window = (1<<61)/MaxCount + r.Int64N(3) - 1
		}
		if Less(l.Quota, maxRefill, l.Window, l.Capacity) {
			continue // package core refuses it
		}
		m := New(l)
		if want := fits(m.window, max(m.capacity, m.quota)); m.narrow != want {
			t.Fatalf("seed %d: %v: 64 bits %v, want %v", seed, l, m.narrow, want)
		}
		if !m.narrow {
			continue
		}
		narrow++
		wideMeter := m
		wideMeter.narrow = false
		a, b := make([]uint64, cellWords), make([]uint64, cellWords)
		now := int64(now0)
		for range 20 {
			switch r.IntN(4) {
			case 0:
				now += r.Int64N(m.window + 1)
			case 1:
				now += r.Int64N(m.window/m.quota + 2)
			case 2:
				now -= r.Int64N(m.window/4 + 1)
			}
			cost := 1 + r.Int64N(m.capacity)
			far, wideFar := m.Far(a, now), wideMeter.Far(b, now)
			m.Advance(a, now)
			wideMeter.Advance(b, now)
			allowed, wideAllowed := m.Allows(a, now, cost), wideMeter.Allows(b, now, cost)
			if far != wideFar || allowed != wideAllowed || loadCell(a) != loadCell(b) {
				t.Fatalf("seed %d: %v, cost %d at %d: far %v, allowed %v, state %+v; in 128 bits %v, %v, %+v", seed, l, cost, now, far, allowed, loadCell(a), wideFar, wideAllowed, loadCell(b))
			}
			if r.IntN(5) == 0 { // a charge that nobody has admitted
				cost, allowed = 1+r.Int64N(1<<r.IntN(32)), true
			}
			if allowed {
				m.Charge(a, now, cost)
				wideMeter.Charge(b, now, cost)
			}
			if loadCell(a) != loadCell(b) {
				t.Fatalf("seed %d: %v: a charge of %d at %d makes %+v, in 128 bits %+v", seed, l, cost, now, loadCell(a), loadCell(b))
			}
		}
	}
	if narrow < 500 {
		t.Errorf("only %d limits were compared", narrow)
	}
}

// Of a charge that has been paid off in part, a refund gives back the rest, and
// nothing of what others have charged since.
func TestATokenBucketRefundsWhatIsStillOwed(t *testing.T) {
	m := New(Limit{Quota: 10, Capacity: 10, Window: 10 * second, Algorithm: TokenBucket})
	for _, c := range []struct{ after, then, back, want int64 }{
		{0, 0, 5, 10},          // nothing is paid off yet
		{0, 0, 2, 7},           // a part of the charge
		{3 * second, 5, 5, 5},  // two hits are still owed: 2 of 7
		{4 * second, 5, 5, 5},  // one
		{5 * second, 5, 5, 5},  // none
		{9 * second, 10, 5, 0}, // long ago
		{3 * second, 0, 5, 10},
	} {
		w := make([]uint64, cellWords)
		m.Charge(w, now0, 5)
		reset := resetOf(&m, w, now0)
		now := now0 + c.after
		m.Advance(w, now)
		m.Charge(w, now, c.then)
		m.Refund(w, now, now0, reset, c.back)
		if got := m.Remaining(w, now); got != c.want {
			t.Errorf("%d s after a charge of 5, and another one of %d, a refund of %d leaves %d, want %d", c.after/second, c.then, c.back, got, c.want)
		}
	}
}

// The burst at another quota is rounded down, so that a debt is far sooner than at the own quota.
func TestADebtAtAnotherQuotaWithARoundedBurst(t *testing.T) {
	m := New(Limit{Quota: 2, Capacity: 3, Window: hour, Algorithm: TokenBucket})
	for _, row := range []struct {
		quota uint32
		ahead int64
		far   bool
	}{
		{3, hour + 4*hour/3 - 1, false}, {3, hour + 4*hour/3, true}, // a burst of 4.5 hits is one of 4
		{2, hour + 3*hour/2 - 1, false}, {2, hour + 3*hour/2, true},
	} {
		w := make([]uint64, cellWords)
		cell{t: now0 + row.ahead, b: row.quota}.store(w)
		if got := m.Far(w, now0); got != row.far {
			t.Errorf("at a quota of %d, %d µs ahead: far %v, want %v", row.quota, row.ahead, got, row.far)
		}
	}
}

// A debt at another quota is far if it is a window ahead of the burst at that quota.
func TestADebtAtAnotherQuotaThatIsFar(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: hour, Algorithm: TokenBucket})
	for ahead, want := range map[int64]bool{hour: false, 2*hour - 1: false, 2 * hour: true, 3 * hour: true} {
		w := make([]uint64, cellWords)
		cell{t: now0 + ahead, b: 50}.store(w) // 50 an hour, and a burst of 50
		if got := m.Far(w, now0); got != want {
			t.Errorf("%d µs ahead: far %v, want %v", ahead, got, want)
		}
	}
}
