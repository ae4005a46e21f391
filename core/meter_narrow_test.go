package core

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The arithmetic of a token bucket in 64 bits agrees with that in 128 bits, for
// limits up to those at which the 64 bits end.
func TestATokenBucketIn64BitsAgreesWith128(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	fits := func(window, n int64) bool { return window <= (1<<61)/n }
	narrow := 0
	for range 3000 {
		l := Limit{Quota: 1 + r.Int64N(1<<r.IntN(31)), Window: time.Duration(1000+r.Int64N(1<<(10+r.IntN(34)))) * time.Microsecond, Algorithm: TokenBucket, Burst: r.Int64N(1 << r.IntN(31))}
		if r.IntN(3) == 0 { // just at the end
			l.Quota, l.Burst = MaxQuota, 0
			l.Window = time.Duration((1<<61)/MaxQuota+r.Int64N(3)-1) * time.Microsecond
		}
		if l.Validate() != nil {
			continue
		}
		m := newMeter(l)
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
		now := int64(codecNow)
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
			far, wideFar := m.far(a, now), wideMeter.far(b, now)
			m.advance(a, now)
			wideMeter.advance(b, now)
			allowed, wideAllowed := m.admits(a, now, cost), wideMeter.admits(b, now, cost)
			if far != wideFar || allowed != wideAllowed || loadCell(a) != loadCell(b) {
				t.Fatalf("seed %d: %v, cost %d at %d: far %v, allowed %v, state %+v; in 128 bits %v, %v, %+v", seed, l, cost, now, far, allowed, loadCell(a), wideFar, wideAllowed, loadCell(b))
			}
			if allowed {
				m.charge(a, now, cost)
				wideMeter.charge(b, now, cost)
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
	m := newMeter(Limit{Quota: 10, Window: 10 * time.Second, Algorithm: TokenBucket})
	const second = int64(1_000_000)
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
		m.charge(w, codecNow, 5)
		reset := resetOf(&m, w, codecNow)
		now := codecNow + c.after
		m.advance(w, now)
		m.charge(w, now, c.then)
		m.refund(w, now, codecNow, reset, c.back)
		if got := m.remaining(w, now); got != c.want {
			t.Errorf("%d s after a charge of 5, and another one of %d, a refund of %d leaves %d, want %d", c.after/second, c.then, c.back, got, c.want)
		}
	}
}
