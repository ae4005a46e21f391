package memtable

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// testBits returns bits for some slots, as slotBits and as a slice. The bits
// are few if few is set.
func testBits(r *rand.Rand, slots int, few bool) (b slotBits, model []bool) {
	b, model = newSlotBits(slots), make([]bool, slots)
	for i := range model {
		if r.IntN(2) == 0 && (!few || r.IntN(50) == 0) {
			b.set(i)
			model[i] = true
		}
	}
	return b, model
}

func (b slotBits) check(tb testing.TB, model []bool) {
	tb.Helper()
	for i, want := range model {
		if b.has(i) != want {
			tb.Fatalf("bit %d of %d is %t, want %t", i, len(model), b.has(i), want)
		}
	}
}

// The slots here end before, at and behind the end of a word.
var slotNumbers = []int{1, 12, 63, 64, 65, 127, 128, 129, 200}

func TestTheNextSetBitIsFound(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, slots := range slotNumbers {
		for round := range 20 {
			b, model := testBits(r, slots, round%2 == 0)
			for from := range slots + 1 {
				want := slices.Index(model[from:], true)
				if want >= 0 {
					want += from
				}
				if got := b.next(from); got != want {
					t.Fatalf("the first set bit of %d from %d on is %d, want %d", slots, from, got, want)
				}
			}
		}
	}
}

func TestBitsMoveWithTheSlots(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, slots := range slotNumbers {
		for i := range slots {
			for _, end := range []int{i, i + r.IntN(slots-i), slots - 1} {
				b, model := testBits(r, slots, false)
				b.unset(end) // it is the bit of an empty slot
				copy(model[i+1:end+1], model[i:end])
				model[i] = false
				b.moveUp(i, end)
				b.check(t, model)
			}
			for _, end := range []int{i + 1, i + 1 + r.IntN(slots-i), slots} {
				b, model := testBits(r, slots, false)
				copy(model[i:end-1], model[i+1:end])
				model[end-1] = false
				b.moveDown(i, end)
				b.check(t, model)
			}
		}
	}
}
