// Package sketch finds the most frequent keys of a stream in a fixed amount of memory.
//
// It is the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, "Efficient
// Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005): a counter is
// kept for as many keys as fit; a new key takes over the smallest counter and what it
// has counted. A key that makes up more than 1/n of a part of the stream is always among
// the n counters of that part. No count is too small, and each is too large by no more
// than its Over.
package sketch

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
)

const (
	parts   = 8   // each has a lock of its own
	longest = 256 // bytes of a key that are kept
)

// Key is what is counted: a key of one of several groups.
type Key struct {
	Group      int
	Key, Extra string
}

// Counted is a key and how often it came.
type Counted struct {
	Key
	// Cut reports that the key was too long to be kept whole.
	Cut bool
	// Count is how often the key came, or up to Over more.
	Count, Over uint64
	// Note is what was given with the last Add.
	Note uint64
}

// Sketch is a sketch. Its methods may be called concurrently.
type Sketch struct {
	seed  maphash.Seed
	parts [parts]part
}

type part struct {
	mu    sync.Mutex
	slots []slot
	heap  []int32          // places of slots: none was placed with more than those below it
	index map[uint64]int32 // the place of a key's slot, by its hash
	_     [40]byte
}

type slot struct {
	hash        uint64
	count, over uint64
	placed      uint64 // count when the slot got its place in the heap
	note        uint64
	group       int32
	split       int32  // where the extra begins in text
	text        []byte // key and extra; at most longest bytes
	cut         bool
}

// New returns a sketch with room for n keys, rounded up to a multiple of 8.
func New(n int) *Sketch {
	s := &Sketch{seed: maphash.MakeSeed()}
	each := max(1, (n+parts-1)/parts)
	for i := range s.parts {
		s.parts[i].slots = make([]slot, 0, each)
		s.parts[i].heap = make([]int32, 0, each)
		s.parts[i].index = make(map[uint64]int32, each)
	}
	return s
}

// Add counts a key n times more, and keeps note with it. Two keys with the same 64-bit
// hash are counted as one.
func (s *Sketch) Add(k Key, n, note uint64) {
	hash := maphash.String(s.seed, k.Key) ^ uint64(k.Group)*0x9e3779b97f4a7c15 //nolint:gosec // not below 0
	if k.Extra != "" {
		hash ^= bits.RotateLeft64(maphash.String(s.seed, k.Extra), 1)
	}
	s.parts[hash%parts].add(hash, k, n, note)
}

func (p *part) add(hash uint64, k Key, n, note uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.index[hash]; ok {
		p.slots[at].count += n // its place in the heap stays until least looks at it
		p.slots[at].note = note
		return
	}
	at, over := int32(len(p.slots)), uint64(0) //nolint:gosec // a few hundred
	if len(p.slots) < cap(p.slots) {
		p.slots = p.slots[:at+1] // with the memory of a slot that was forgotten
		p.heap = append(p.heap, at)
	} else {
		at = p.least()
		delete(p.index, p.slots[at].hash)
		over = p.slots[at].count
	}
	slot := &p.slots[at]
	slot.hash, slot.count, slot.over, slot.placed, slot.note = hash, over+n, over, over, note
	slot.keep(k)
	p.index[hash] = at
	if over == 0 {
		p.rise(len(p.heap) - 1)
	}
}

// least returns the place of the slot that has counted least.
func (p *part) least() int32 {
	for {
		first := &p.slots[p.heap[0]]
		if first.placed == first.count {
			return p.heap[0]
		}
		first.placed = first.count
		p.sink(0)
	}
}

// keep makes the slot that of k. It uses the slot's memory again.
func (s *slot) keep(k Key) {
	key := k.Key[:min(len(k.Key), longest)]
	extra := k.Extra[:min(len(k.Extra), longest-len(key))]
	s.text = append(append(s.text[:0], key...), extra...)
	s.group, s.split = int32(k.Group), int32(len(key))
	s.cut = len(key) < len(k.Key) || len(extra) < len(k.Extra)
}

// sink moves a slot to its place in the heap, after it has counted more.
func (p *part) sink(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(p.heap); child++ {
			if p.placed(child) < p.placed(least) {
				least = child
			}
		}
		if least == at {
			return
		}
		p.heap[at], p.heap[least] = p.heap[least], p.heap[at]
		at = least
	}
}

// rise moves a new slot to its place in the heap.
func (p *part) rise(at int) {
	for at > 0 {
		above := (at - 1) / 2
		if p.placed(above) <= p.placed(at) {
			return
		}
		p.heap[at], p.heap[above] = p.heap[above], p.heap[at]
		at = above
	}
}

func (p *part) placed(at int) uint64 { return p.slots[p.heap[at]].placed }

// Halve halves all counts, so that what came long ago counts less than what comes now. A
// key whose count falls to 0 is forgotten.
func (s *Sketch) Halve() {
	for i := range s.parts {
		s.parts[i].halve()
	}
}

func (p *part) halve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := 0
	clear(p.index)
	for i := range p.slots {
		slot := &p.slots[i]
		slot.count /= 2
		slot.over /= 2
		slot.placed = slot.count
		if slot.count > 0 {
			p.slots[kept], p.slots[i] = p.slots[i], p.slots[kept]
			p.index[p.slots[kept].hash] = int32(kept) //nolint:gosec // a few hundred
			kept++
		}
	}
	p.slots, p.heap = p.slots[:kept], p.heap[:kept]
	for i := range p.heap {
		p.heap[i] = int32(i) //nolint:gosec // a few hundred
	}
	for i := kept/2 - 1; i >= 0; i-- {
		p.sink(i)
	}
}

func (s *slot) key() Key {
	return Key{Group: int(s.group), Key: string(s.text[:s.split]), Extra: string(s.text[s.split:])}
}

// Top returns the n keys that came most often for certain: those with the largest
// Count - Over, the largest first. By Count alone, a key that came late would stand before
// one that came as often, because it has taken over more.
func (s *Sketch) Top(n int) []Counted {
	var all []Counted
	for i := range s.parts {
		all = s.parts[i].append(all)
	}
	slices.SortFunc(all, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count-b.Over, a.Count-a.Over), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key.Key, b.Key.Key))
	})
	return all[:min(n, len(all))]
}

func (p *part) append(dst []Counted) []Counted {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		s := &p.slots[i]
		dst = append(dst, Counted{Key: s.key(), Cut: s.cut, Count: s.count, Over: s.over, Note: s.note})
	}
	return dst
}
