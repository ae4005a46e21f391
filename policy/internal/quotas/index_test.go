package quotas

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// The index finds what a map finds, however many keys and rows there are.
func TestTheIndexAgreesWithAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
	for _, n := range []int{0, 1, 2, 7, 8, 9, 100, 20_000} {
		rows := 1 + random.IntN(n+1)
		entries := map[string]entry{}
		for i := range n {
			entries[fmt.Sprint("key", i)] = entry{uint32(random.IntN(rows)), uint32(i)} //nolint:gosec // small
		}
		x := newIndex(entries, bits.Len(uint(rows)))
		for key, want := range entries {
			i := x.find([]byte(key))
			if i < 0 || x.row(i) != int(want.row) || x.lines[i] != want.line {
				t.Fatalf("%d keys, %q: slot %d, want %+v", n, key, i, want)
			}
		}
		for i := range 1000 {
			if i := x.find([]byte(fmt.Sprint("other", i))); i >= 0 {
				t.Fatalf("%d keys: slot %d has a key that is not there", n, i)
			}
		}
	}
}

// Two keys whose slots would be equal are told apart with another seed.
func TestKeysOfOneSlotGetAnotherSeed(t *testing.T) {
	entries := map[string]entry{}
	for i := range 300 {
		entries[fmt.Sprint(i)] = entry{line: uint32(i)} //nolint:gosec // small
	}
	x := newIndex(entries, 54) // 10 bits of each hash are left
	for key, want := range entries {
		if i := x.find([]byte(key)); i < 0 || x.lines[i] != want.line {
			t.Fatalf("%q: slot %d, want %+v", key, i, want)
		}
	}
}
