package joining

import (
	"math/rand/v2"
	"testing"
)

// The queue is first-in, first-out at every size, and keeps nothing that has left it.
func TestTheQueueIsFirstInFirstOut(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	var q queue[*int]
	in, out := 0, 0
	for range 10_000 {
		if r.IntN(in+1) >= out+r.IntN(200) || q.n == 0 {
			n := in
			q.push(&n)
			in++
		} else {
			if got := *q.first(); got != out {
				t.Fatalf("seed %d: %d comes out, want %d", seed, got, out)
			}
			q.pop()
			out++
		}
		if q.n != in-out {
			t.Fatalf("seed %d: %d elements, want %d", seed, q.n, in-out)
		}
	}
	for q.n > 0 {
		q.pop()
	}
	for i, x := range q.ring {
		if x != nil {
			t.Errorf("seed %d: element %d is kept", seed, i)
		}
	}
}
