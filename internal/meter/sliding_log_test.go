package meter

import (
	"math/rand/v2"
	"testing"
)

// The ring of a log has the newest hits, wherever in the ring the oldest one is.
func TestTheRingOfALogFollowsAList(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		quota := 1 + r.Int64N(5)
		m := New(Limit{Quota: quota, Capacity: quota, Window: second, Algorithm: SlidingLog})
		w := make([]uint64, logHeader+quota)
		var list []int64
		for now, step := int64(now0), 0; step < 60; step++ {
			m.Advance(w, now)
			for len(list) > 0 && list[0] <= now-second {
				list = list[1:]
			}
			if logLen(w) != int64(len(list)) {
				t.Fatalf("seed %d, step %d: %d hits, want %d", seed, step, logLen(w), len(list))
			}
			for i, at := range list {
				if got := int64(*logHit(w, int64(i))); got != at {
					t.Fatalf("seed %d, step %d: hit %d is of the time %d, want %d", seed, step, i, got-now0, at-now0)
				}
			}
			cost := 1 + r.Int64N(quota+2) // also above the quota: the newest hits stay
			m.Charge(w, now, cost)
			for range cost {
				list = append(list, now)
			}
			list = list[max(0, int64(len(list))-quota):]
			now += r.Int64N(second / 2)
		}
	}
}
