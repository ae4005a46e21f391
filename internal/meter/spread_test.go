package meter

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The windows of a key follow one on the other, moved by the key's share, at all times: also
// before the Unix epoch, which a test's clock may show.
func TestTheWindowsOfAShareFollowEachOther(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for _, algorithm := range []Algorithm{FixedWindow, SlidingWindow} {
		for range 2000 {
			window := 1 + r.Int64N(1<<uint(1+r.IntN(44)))
			own := New(Limit{Algorithm: algorithm, Aligned: true, Spread: true, Quota: 3, Capacity: 3, Window: window})
			var room Meter
			m := own.ForShare(r.Uint64(), &room)
			now := r.Int64N(1<<51) - 1<<50
			if r.IntN(3) == 0 {
				now = r.Int64N(4*window) - 2*window
			}
			w := make([]uint64, m.FixedWords())
			m.Advance(w, now)
			m.Charge(w, now, 1)
			from := loadCell(w).t
			if from > now || now-from >= window || (from-m.shift)%window != 0 {
				t.Fatalf("seed %d: a window of %d, moved by %d, begins at %d; it is %d", seed, window, m.shift, from, now)
			}
			if m.shift < 0 || m.shift >= window {
				t.Fatalf("seed %d: a window of %d is moved by %d", seed, window, m.shift)
			}
		}
	}
}

// The least and the largest share move a window by nothing, and by nearly all of it.
func TestTheEdgesOfShares(t *testing.T) {
	m := New(Limit{Algorithm: FixedWindow, Aligned: true, Spread: true, Quota: 3, Capacity: 3, Window: 1000})
	for share, want := range map[uint64]int64{0: 0, 1 << 54: 0, 1 << 63: 500, 1<<63 - 1: 499, math.MaxUint64: 999} {
		if got := m.ShiftOf(share); got != want {
			t.Errorf("share %d: %d, want %d", share, got, want)
		}
	}
}
