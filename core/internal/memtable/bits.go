package memtable

import "math/bits"

// slotBits is one bit for each slot of a table. It moves with the slots.
type slotBits []uint64

func newSlotBits(slots int) slotBits { return make(slotBits, (slots+63)/64) }

func (b slotBits) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b slotBits) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b slotBits) unset(i int)    { b[i>>6] &^= 1 << (i & 63) }

// next returns the first set bit from i on, or -1.
func (b slotBits) next(i int) int {
	w := i >> 6
	if w >= len(b) {
		return -1
	}
	if rest := b[w] >> (i & 63); rest != 0 {
		return i + bits.TrailingZeros64(rest)
	}
	for w++; w < len(b); w++ {
		if b[w] != 0 {
			return w<<6 + bits.TrailingZeros64(b[w])
		}
	}
	return -1
}

// moveUp moves the bits i to end-1 up by one and unsets bit i.
func (b slotBits) moveUp(i, end int) {
	for w := end >> 6; w >= i>>6; w-- {
		moved := b[w] << 1
		if w > 0 {
			moved |= b[w-1] >> 63
		}
		b.replace(w, moved, i, end)
	}
	b.unset(i)
}

// moveDown moves the bits i+1 to end-1 down by one and unsets bit end-1.
func (b slotBits) moveDown(i, end int) {
	for w := i >> 6; w <= (end-1)>>6; w++ {
		moved := b[w] >> 1
		if w+1 < len(b) {
			moved |= b[w+1] << 63
		}
		b.replace(w, moved, i, end-1)
	}
	b.unset(end - 1)
}

// replace sets those bits of word w that lie from first to last to the bits of moved.
func (b slotBits) replace(w int, moved uint64, first, last int) {
	from, end := max(0, first-w<<6), last-w<<6+1
	mask := ^uint64(0) << from & (1<<end - 1) // 1<<end is 0 if end is 64 or more
	b[w] = b[w]&^mask | moved&mask
}
