// Package sketch finds the most frequent keys of a stream in a fixed amount of memory.
//
// It is the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, "Efficient Computation of
// Frequent and Top-k Elements in Data Streams", ICDT 2005): a counter is kept for as many keys as
// fit; a new key takes over the smallest counter and what it has counted. A key that makes up more
// than 1/n of a part of the stream is always among the n counters of that part. No count is too
// small, and each is too large by no more than its Over.
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

// Key is what is counted: a key of a rule.
type Key struct{ Rule, Key, Extra string }

// Note is what a sketch keeps of the last time that a key came.
type Note struct {
	Second         int64
	Used, Capacity int64 // of the key's limit, in hits
}

// Counted is a key and how often it came.
type Counted struct {
	Key
	// Cut reports that the key was too long to be kept whole.
	Cut bool
	// Count is how often the key came, or up to Over more.
	Count, Over uint64
	Note        Note
}

// Sketch is a sketch. Its methods may be called concurrently.
type Sketch struct {
	seed  maphash.Seed
	parts [parts]part
}

type part struct {
	mu     sync.Mutex
	counts []uint64 // of the slots: the smallest one is looked for here
	slots  []slot
	index  map[uint64]int // the place of a key's slot, by its hash
}

type slot struct {
	hash  uint64
	over  uint64
	note  Note
	rule  string
	split int    // where the extra begins in text
	text  []byte // key and extra; at most longest bytes
	cut   bool
}

// New returns a sketch with room for n keys, rounded up to a multiple of 8.
func New(n int) *Sketch {
	s := &Sketch{seed: maphash.MakeSeed()}
	each := max(1, (n+parts-1)/parts)
	for i := range s.parts {
		s.parts[i].counts = make([]uint64, 0, each)
		s.parts[i].slots = make([]slot, 0, each)
		s.parts[i].index = make(map[uint64]int, each)
	}
	return s
}

// Add counts a key once more, and keeps note with it. Two keys with the same 64-bit hash are
// counted as one.
func (s *Sketch) Add(k Key, note Note) {
	hash := maphash.String(s.seed, k.Key) ^ bits.RotateLeft64(maphash.String(s.seed, k.Rule), 1)
	if k.Extra != "" {
		hash ^= bits.RotateLeft64(maphash.String(s.seed, k.Extra), 2)
	}
	s.parts[hash%parts].add(hash, k, note)
}

func (p *part) add(hash uint64, k Key, note Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.index[hash]; ok {
		p.counts[at]++
		p.slots[at].note = note
		return
	}
	at, over := len(p.slots), uint64(0)
	if at < cap(p.slots) {
		p.counts, p.slots = append(p.counts, 0), p.slots[:at+1] // with the memory of a slot that was forgotten
	} else {
		at = p.least()
		over = p.counts[at]
		delete(p.index, p.slots[at].hash)
	}
	p.counts[at] = over + 1
	p.slots[at].keep(k)
	p.slots[at].hash, p.slots[at].over, p.slots[at].note = hash, over, note
	p.index[hash] = at
}

// least returns the place of the slot that has counted least.
func (p *part) least() int {
	least, fewest := 0, p.counts[0]
	for at, count := range p.counts {
		if count < fewest {
			least, fewest = at, count
		}
	}
	return least
}

// keep makes the slot that of k. It uses the slot's memory again.
func (s *slot) keep(k Key) {
	key := k.Key[:min(len(k.Key), longest)]
	extra := k.Extra[:min(len(k.Extra), longest-len(key))]
	s.text = append(append(s.text[:0], key...), extra...)
	s.rule, s.split = k.Rule, len(key)
	s.cut = len(key) < len(k.Key) || len(extra) < len(k.Extra)
}

// Halve halves all counts, so that what came long ago counts less than what comes now. A key whose
// count falls to 0 is forgotten.
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
		p.counts[i] /= 2
		p.slots[i].over /= 2
		if p.counts[i] > 0 {
			p.counts[kept] = p.counts[i]
			p.slots[kept], p.slots[i] = p.slots[i], p.slots[kept]
			p.index[p.slots[kept].hash] = kept
			kept++
		}
	}
	p.counts, p.slots = p.counts[:kept], p.slots[:kept]
}

// Top returns the n keys that came most often for certain: those with the largest Count - Over, the
// largest first. By Count alone, a key that came late would stand before one that came as often,
// because it has taken over more.
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
		k := Key{Rule: s.rule, Key: string(s.text[:s.split]), Extra: string(s.text[s.split:])}
		dst = append(dst, Counted{Key: k, Cut: s.cut, Count: p.counts[i], Over: s.over, Note: s.note})
	}
	return dst
}
