package quotas

import (
	"hash/maphash"
	"math/bits"
)

// index finds the rows of keys by a hash. It does not keep the keys: a lookup loads one line of memory
// and not three, as in a map of strings. The seed is the process's own, so that nobody
// can look for keys of equal hashes.
//
// A slot has a row's number plus 1 in its low bits, and bits of the key's hash in
// the others: a key that the table does not have is taken for one that it has with a probability of
// 2⁻³⁷ if each of ten million keys has a row of its own, and of 2⁻⁵⁰ if they
// share a hundred rows. 0 is an empty slot. A search begins at the first slot of a line.
type index struct {
	seed    maphash.Seed
	rowBits int // the low bits of a slot
	slots   []uint64
	lines   []uint32 // of the entries in slots
	keys    int
}

// lineSlots is the number of slots in a line of memory.
const lineSlots = 8

// newIndex returns the index of entries. The numbers of rows, plus 1, fit in rowBits bits.
func newIndex(entries map[string]entry, rowBits int) index {
	n := (len(entries)+len(entries)/2)/lineSlots*lineSlots + 2*lineSlots // an empty slot ends every search
	x := index{rowBits: rowBits, keys: len(entries)}
	for filled := false; !filled; {
		x.seed, x.slots, x.lines = maphash.MakeSeed(), make([]uint64, n), make([]uint32, n)
		filled = x.fill(entries)
	}
	return x
}

// fill fills the index. It returns false if two keys cannot be told apart.
func (x *index) fill(entries map[string]entry) bool {
	for key, e := range entries {
		i, check := x.home([]byte(key))
		for ; x.slots[i] != 0; i = x.next(i) {
			if x.slots[i]>>x.rowBits == check {
				return false
			}
		}
		x.slots[i], x.lines[i] = check<<x.rowBits|uint64(e.row+1), e.line
	}
	return true
}

// home returns the slot at which a search for a key begins, and what the slots of
// the key have in their high bits.
func (x *index) home(key []byte) (i int, check uint64) {
	h := maphash.Bytes(x.seed, key)
	line, _ := bits.Mul64(h, uint64(len(x.slots)/lineSlots))
	return int(line) * lineSlots, h & (1<<(64-x.rowBits) - 1) //nolint:gosec // line is below the number of lines
}

func (x *index) next(i int) int {
	if i++; i == len(x.slots) {
		return 0
	}
	return i
}

// find returns the slot of a key, -1 if the table does not have it.
func (x *index) find(key []byte) int {
	i, check := x.home(key)
	for ; ; i = x.next(i) {
		switch s := x.slots[i]; {
		case s == 0:
			return -1
		case s>>x.rowBits == check:
			return i
		}
	}
}

// row returns the number of the row of a slot.
func (x *index) row(slot int) int { return int(x.slots[slot]&(1<<x.rowBits-1)) - 1 } //nolint:gosec // at most MaxRows
