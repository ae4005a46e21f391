package core

import "math/bits"

// memoryTable holds the keys of one rule in one shard: slots of a few words,
// without pointers, so that the garbage collector has nothing to look at.
//
// It is an ordered hash table with linear probing (Amble and Knuth, Ordered
// hash tables, 1974). A slot's home is its hash scaled to the table's length,
// which need not be a power of two and so can grow by a quarter; slots stand
// in the order of their hashes, so that a search for what is not there ends
// early even when the table is nearly full, growing is one pass from left to
// right, and no two hashes that happen to be equal are in each other's way.
type memoryTable struct {
	layout *memoryLayout
	words  []uint64
	homes  int // slots that a hash can call home; some spare ones follow
	slots  int // all slots
	used   int
	cursor int           // where the next look for expired keys begins
	blocks *memoryBlocks // nil where no limit's state grows
}

// The words of a slot: the hash, then fixedWords for each limit.
const slotHeader = 2

const (
	minHomes   = 8
	spareSlots = 24
)

func newMemoryTable(l *memoryLayout) *memoryTable {
	t := &memoryTable{layout: l}
	t.needBlocks()
	t.allocate(minHomes)
	return t
}

// needBlocks makes blocks where a limit of the layout needs some.
func (t *memoryTable) needBlocks() {
	for i := range t.layout.meters {
		if t.blocks == nil && t.layout.meters[i].grows() {
			t.blocks = new(memoryBlocks)
		}
	}
}

func (t *memoryTable) allocate(homes int) {
	t.homes, t.slots = homes, homes+spareSlots
	if homes < 2*spareSlots {
		t.slots = homes + homes/2
	}
	t.words = make([]uint64, t.slots*t.layout.stride)
	t.cursor = 0
}

func (t *memoryTable) slot(i int) []uint64 {
	n := t.layout.stride
	return t.words[i*n : i*n+n : i*n+n]
}

func (t *memoryTable) empty(i int) bool { return t.words[i*t.layout.stride] == 0 }

func (t *memoryTable) home(hash uint64) int {
	h, _ := bits.Mul64(hash, uint64(t.homes))
	return int(h)
}

// find returns the slot of a key, or where it would have to be inserted.
func (t *memoryTable) find(h hash128) (i int, found bool) {
	stride := t.layout.stride
	i = t.home(h.a)
	words := t.words
	for p := i * stride; p < len(words)-1; p += stride {
		switch a := words[p]; {
		case a == h.a && words[p+1] == h.b:
			return i, true
		case a == 0 || a > h.a:
			return i, false
		}
		i++
	}
	return i, false
}

// insert makes a zeroed slot for a key that find has not found, and returns
// its place.
func (t *memoryTable) insert(h hash128) int {
	if t.used >= t.homes-t.homes/10 {
		t.resize(t.grown())
	}
	for {
		i, _ := t.find(h)
		end := i
		for end < t.slots && !t.empty(end) {
			end++
		}
		if end < t.slots {
			stride := t.layout.stride
			copy(t.words[(i+1)*stride:(end+1)*stride], t.words[i*stride:end*stride])
			s := t.slot(i)
			clear(s)
			s[0], s[1] = h.a, h.b
			t.used++
			return i
		}
		// The last homes are crowded and the spare slots behind them full.
		spare := make([]uint64, spareSlots*t.layout.stride)
		t.words = append(t.words, spare...)
		t.slots += spareSlots
	}
}

// grown returns the next length. The table of a shard that holds its part of
// MaxKeys is made to measure.
func (t *memoryTable) grown() int {
	homes := max(t.homes+t.homes/4, t.homes+minHomes)
	if full := t.layout.fullHomes; t.homes < full && full < homes {
		return full
	}
	return homes
}

// remove frees a slot and closes the gap.
func (t *memoryTable) remove(i int) {
	t.free(t.slot(i))
	end := i + 1
	for end < t.slots && !t.empty(end) && t.home(t.slot(end)[0]) < end {
		end++
	}
	stride := t.layout.stride
	copy(t.words[i*stride:(end-1)*stride], t.words[(i+1)*stride:end*stride])
	clear(t.slot(end - 1))
	t.used--
}

func (t *memoryTable) free(slot []uint64) {
	for i := range t.layout.meters {
		if t.layout.meters[i].grows() {
			t.blocks.free(slot[t.layout.offset(i)])
		}
	}
}

// resize moves all slots to a table of other length.
func (t *memoryTable) resize(homes int) {
	old := *t
	t.allocate(homes)
	t.fill(&old, func(to, from []uint64) { copy(to, from) })
}

// fill puts every slot of old, in order, into the empty table t.
func (t *memoryTable) fill(old *memoryTable, put func(to, from []uint64)) {
	next, stride := 0, t.layout.stride
	for i := range old.slots {
		if old.empty(i) {
			continue
		}
		from := old.slot(i)
		next = max(next, t.home(from[0]))
		if next >= t.slots {
			t.words = append(t.words, make([]uint64, spareSlots*stride)...)
			t.slots += spareSlots
		}
		put(t.slot(next), from)
		next++
	}
}

// state returns the words of a limit's state, nil where it has none yet.
func (t *memoryTable) state(slot []uint64, limit int) []uint64 {
	off := t.layout.offset(limit)
	if m := &t.layout.meters[limit]; !m.grows() {
		end := off + m.fixedWords()
		return slot[off:end:end]
	}
	return t.blocks.get(slot[off])
}

// room returns the words of a limit's state with room for a charge of cost.
func (t *memoryTable) room(slot []uint64, limit int, cost int64) []uint64 {
	state, m := t.state(slot, limit), &t.layout.meters[limit]
	need := m.words(state, cost)
	if len(state) >= need {
		return state
	}
	ref := &slot[t.layout.offset(limit)]
	longer := t.blocks.allocate(need)
	block := t.blocks.get(longer)
	m.grow(block, state)
	t.blocks.free(*ref)
	*ref = longer
	return block
}
