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
	slots []slot           // a heap: no slot counts more than those below it
	index map[uint64]int32 // the place of a key's slot, by its hash
	_     [64]byte
}

type slot struct {
	hash        uint64
	count, over uint64
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
		s.parts[i].index = make(map[uint64]int32, each)
	}
	return s
}

// Add counts a key once more, and keeps note with it. Two keys with the same 64-bit hash
// are counted as one.
func (s *Sketch) Add(k Key, note uint64) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_ = h.WriteByte(byte(k.Group))
	_ = h.WriteByte(byte(k.Group >> 8))
	_, _ = h.WriteString(k.Key)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(k.Extra)
	sum := h.Sum64()
	s.parts[sum%parts].add(sum, k, note)
}

func (p *part) add(hash uint64, k Key, note uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.index[hash]; ok {
		p.slots[at].count++
		p.slots[at].note = note
		p.sink(int(at))
		return
	}
	if len(p.slots) < cap(p.slots) {
		at := len(p.slots)
		p.slots = p.slots[:at+1] // with the memory of a slot that was forgotten
		p.slots[at].hash, p.slots[at].count, p.slots[at].over, p.slots[at].note = hash, 1, 0, note
		p.slots[at].keep(k)
		p.index[hash] = int32(at)
		p.rise(at)
		return
	}
	least := &p.slots[0]
	delete(p.index, least.hash)
	least.hash, least.over, least.note = hash, least.count, note
	least.count++
	least.keep(k)
	p.index[hash] = 0
	p.sink(0)
}

// keep makes the slot that of k. It uses the slot's memory again.
func (s *slot) keep(k Key) {
	key := k.Key[:min(len(k.Key), longest)]
	extra := k.Extra[:min(len(k.Extra), longest-len(key))]
	s.text = append(append(s.text[:0], key...), extra...)
	s.group, s.split = int32(k.Group), int32(len(key))
	s.cut = len(key) < len(k.Key) || len(extra) < len(k.Extra)
}

// sink moves a slot whose count has grown to its place in the heap.
func (p *part) sink(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(p.slots); child++ {
			if p.slots[child].count < p.slots[least].count {
				least = child
			}
		}
		if least == at {
			return
		}
		p.swap(at, least)
		at = least
	}
}

// rise moves a new slot to its place in the heap.
func (p *part) rise(at int) {
	for at > 0 {
		above := (at - 1) / 2
		if p.slots[above].count <= p.slots[at].count {
			return
		}
		p.swap(at, above)
		at = above
	}
}

func (p *part) swap(a, b int) {
	p.slots[a], p.slots[b] = p.slots[b], p.slots[a]
	p.index[p.slots[a].hash], p.index[p.slots[b].hash] = int32(a), int32(b)
}

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
	for i := range p.slots {
		p.slots[i].count /= 2
		p.slots[i].over /= 2
		if p.slots[i].count > 0 {
			p.slots[kept], p.slots[i] = p.slots[i], p.slots[kept]
			kept++
		}
	}
	p.slots = p.slots[:kept]
	clear(p.index)
	for i := range p.slots { // halving and dropping the least keeps the order of a heap only by chance
		p.index[p.slots[i].hash] = int32(i)
	}
	for i := kept/2 - 1; i >= 0; i-- {
		p.sink(i)
	}
}

// Forget forgets a key.
func (s *Sketch) Forget(k Key) {
	for i := range s.parts {
		s.parts[i].forget(k)
	}
}

func (p *part) forget(k Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.slots {
		if p.slots[i].key() != k {
			continue
		}
		last := len(p.slots) - 1
		delete(p.index, p.slots[i].hash)
		if i != last {
			p.slots[i], p.slots[last] = p.slots[last], p.slots[i]
			p.index[p.slots[i].hash] = int32(i)
		}
		p.slots = p.slots[:last]
		if i != last {
			p.rise(i)
			p.sink(i)
		}
		return
	}
}

func (s *slot) key() Key {
	return Key{Group: int(s.group), Key: string(s.text[:s.split]), Extra: string(s.text[s.split:])}
}

// Top returns the n keys that came most often, the most frequent first.
func (s *Sketch) Top(n int) []Counted {
	var all []Counted
	for i := range s.parts {
		all = s.parts[i].append(all)
	}
	slices.SortFunc(all, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Over, b.Over), cmp.Compare(a.Key.Key, b.Key.Key))
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
