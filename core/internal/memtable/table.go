// Package memtable holds the counters of the in-process store: the states of keys, in tables
// without pointers, in shards with a lock each. Only the states that have no fixed size are slices
// of their own. It bounds the number of keys and chooses which key to evict. Package core's Memory
// is a store over it, and documents what it promises.
package memtable

import "math/bits"

// table holds the keys of one rule in one shard: slots of a few words, without pointers, so that
// the garbage collector has nothing to scan.
//
// It is an ordered hash table with linear probing (Amble and Knuth, Ordered hash tables, 1974). A
// slot's home is its hash scaled to the table's length. The length need not be a power of two, so a
// table can grow by a tenth. Slots are in the order of their hashes: a search for an absent key
// ends early even if the table is nearly full, a resize is one pass from left to right, and equal
// hashes do not disturb each other.
//
// A table without keys may have no slots at all: homes and slots are 0 then, find finds nothing,
// and insert allocates the first slots.
type table struct {
	layout *layout
	words  []uint64
	homes  int // slots that a hash can call home; spare ones follow them
	slots  int // all slots
	used   int
	hand   int      // the slot at which the next search for a key to evict begins
	open   slotBits // the slots whose key is not known to be denied
	opens  int      // how many bits are set in open
	blocks *blocks  // nil if no limit's state grows
}

// The words of a slot: the key's hash, then those of each limit's state. If the state grows, it is
// one word, the state's number in blocks.
const slotHeader = 2

const (
	minHomes   = 8
	spareSlots = 24
)

func newTable(l *layout) *table {
	t := &table{layout: l}
	if !l.fixed {
		t.blocks = new(blocks)
	}
	return t
}

// allocate makes the table's slots, all of them empty.
func (t *table) allocate(homes int) {
	t.homes, t.slots = homes, homes+min(homes/2, spareSlots)
	t.words = make([]uint64, t.slots*t.layout.stride)
	t.open, t.opens, t.hand = newSlotBits(t.slots), 0, 0
}

func (t *table) slot(i int) []uint64 {
	n := t.layout.stride
	return t.words[i*n : i*n+n : i*n+n]
}

func (t *table) empty(i int) bool { return t.words[i*t.layout.stride] == 0 }

func (t *table) home(place uint64) int {
	h, _ := bits.Mul64(place, uint64(t.homes))
	return int(h)
}

// find returns the slot of a key, or the slot at which to insert it.
func (t *table) find(h keyHash) (i int, found bool) {
	stride := t.layout.stride
	i = t.home(h.place)
	words := t.words
	for p := i * stride; p < len(words)-1; p += stride {
		if place := words[p]; place == h.place && words[p+1] == h.check {
			return i, true
		} else if place-1 >= h.place { // place is 0, or above h.place
			return i, false
		}
		i++
	}
	return i, false
}

// insert makes a zeroed slot for a key that find has not found, and returns its index.
func (t *table) insert(h keyHash) int {
	if t.used >= t.homes-t.homes/10 {
		t.resize(t.grown())
	}
	i, _ := t.find(h)
	end := i
	for end < t.slots && !t.empty(end) {
		end++
	}
	if end == t.slots { // the last homes are crowded and the spare slots full
		t.extend()
	}
	stride := t.layout.stride
	copy(t.words[(i+1)*stride:(end+1)*stride], t.words[i*stride:end*stride])
	t.open.moveUp(i, end)
	s := t.slot(i)
	clear(s)
	s[0], s[1] = h.place, h.check
	t.open.set(i)
	t.opens++
	t.used++
	return i
}

// extend adds spare slots at the end.
func (t *table) extend() {
	old, open := t.words, t.open
	t.slots += spareSlots
	t.words = make([]uint64, t.slots*t.layout.stride)
	copy(t.words, old)
	t.open = newSlotBits(t.slots)
	copy(t.open, open)
}

// grown returns the next length. A table that will hold its shard's part of MaxKeys gets exactly
// the length for that.
func (t *table) grown() int {
	homes := max(t.homes+t.homes/10, t.homes+minHomes)
	if full := t.layout.fullHomes; t.homes < full {
		return min(homes, full)
	}
	return homes
}

// remove frees a slot and closes the gap.
func (t *table) remove(i int) {
	t.free(t.slot(i))
	t.deny(i)
	end := i + 1
	for end < t.slots && !t.empty(end) && t.home(t.slot(end)[0]) < end {
		end++
	}
	stride := t.layout.stride
	copy(t.words[i*stride:(end-1)*stride], t.words[(i+1)*stride:end*stride])
	t.open.moveDown(i, end)
	clear(t.slot(end - 1))
	t.used--
}

func (t *table) free(slot []uint64) {
	for i := range t.layout.meters {
		if t.layout.meters[i].Grows() {
			t.blocks.release(slot[t.layout.offsets[i]])
		}
	}
}

// shrink frees memory if few slots are used. It moves slots.
func (t *table) shrink() {
	switch {
	case t.used == 0 && t.homes > minHomes:
		t.drop()
	case t.homes > 16*minHomes && t.used < t.homes/8:
		t.resize(max(minHomes, t.used*2))
	}
}

// drop frees the slots of a table without keys.
func (t *table) drop() {
	t.words, t.open = nil, nil
	t.homes, t.slots, t.hand = 0, 0, 0
}

// resize moves all slots to a table of another length.
func (t *table) resize(homes int) {
	old := *t
	t.allocate(homes)
	t.fill(&old, nil)
}

// fill puts every slot of old, in order, into the empty table t: by put, or, if that is nil, as
// they are.
func (t *table) fill(old *table, put func(to, from []uint64)) {
	next := 0
	for i := range old.slots {
		from := old.slot(i)
		if from[0] == 0 {
			continue
		}
		next = max(next, t.home(from[0]))
		if next >= t.slots {
			t.extend()
		}
		if put != nil {
			put(t.slot(next), from)
		} else {
			copy(t.slot(next), from)
		}
		if old.open.has(i) {
			t.open.set(next)
			t.opens++
		}
		next++
	}
}

// deny notes that the key of a slot is denied.
func (t *table) deny(i int) {
	if t.open.has(i) {
		t.open.unset(i)
		t.opens--
	}
}

// reopen opens a slot if its key is no longer denied.
func (t *table) reopen(i int, now int64) {
	if t.open.has(i) {
		return
	}
	if denied, _ := t.weigh(t.slot(i), now); !denied {
		t.open.set(i)
		t.opens++
	}
}
