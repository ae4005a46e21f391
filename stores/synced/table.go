package synced

import (
	"hash/maphash"
	"slices"
	"sync"
)

// entry is the counter of one key of one limit, in the window that it was last
// used in and the one before.
type entry struct {
	id       ident
	start    int64
	mark     int32 // its place among the shard's dirty ones, from 1; 0: it is not to be exchanged
	fresh    bool  // has never been exchanged
	current  slot
	previous slot
	window   int64
	names    string // of its counters in the backend: see name
}

// backSuffix follows the name of the counter of hits in the name of the counter
// of refunds. No name of a counter of hits ends in it.
const backSuffix = "-"

// name returns the backend's name of the entry's hits or refunds.
func (e *entry) name(back bool) string {
	if back {
		return e.names
	}
	return e.names[:len(e.names)-len(backSuffix)]
}

// roll brings the entry to the window that begins at start. If start is before
// the entry's own, a clock was set back: the entry stays.
func (e *entry) roll(start int64) {
	switch {
	case start <= e.start:
	case start == e.start+e.window:
		e.previous, e.current, e.start = e.current, slot{}, start
	default: // what is older than two lengths means nothing any more
		e.previous, e.current, e.start = slot{}, slot{}, start
	}
}

// at returns the slot of the window that begins at start, nil for others.
func (e *entry) at(start int64) *slot {
	switch start {
	case e.start:
		return &e.current
	case e.start - e.window:
		return &e.previous
	}
	return nil
}

// unsent returns how many hits and refunds would be lost with the entry.
func (e *entry) unsent() int64 { return e.current.unsent() + e.previous.unsent() }

func (e *entry) expired(now int64) bool {
	return now >= e.start+2*e.window && e.unsent() == 0 || now >= e.start+3*e.window
}

// ident tells entries apart: two independent hashes of the key, mixed with the
// limit's number.
type ident struct{ a, b uint64 }

const shardCount = 64

type shard struct {
	mu      sync.Mutex
	entries entries
	dirty   []*entry // those that are to be exchanged
	_       [64]byte // keeps shards out of each other's cache lines
}

type table struct {
	seeds  [2]maphash.Seed
	shards [shardCount]shard
	most   int // entries of a shard
	lost   func(hits int64)
}

func newTable(maxKeys int, lost func(int64)) *table {
	return &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: max(1, maxKeys/shardCount), lost: lost}
}

func (t *table) ident(limit uint64, key []byte) ident {
	return ident{maphash.Bytes(t.seeds[0], key) ^ limit*0x9e3779b97f4a7c15, maphash.Bytes(t.seeds[1], key) ^ limit*0xc2b2ae3d27d4eb4f}
}

func (id ident) shard() uint64 { return id.b % shardCount }

// markedFor is how many exchanges an entry takes part in after its last use.
const markedFor = 3

// use notes that an entry has been used, and is to be exchanged. The shard is
// locked.
func (s *shard) use(e *entry) {
	s.entries.find(e.id).rounds = markedFor
	if e.mark == 0 {
		s.dirty = append(s.dirty, e)
		e.mark = int32(len(s.dirty)) //nolint:gosec // at most MaxKeys
	}
}

// unmark notes that an entry is not to be exchanged. The last one that is takes
// its place.
func (s *shard) unmark(e *entry) {
	if e.mark == 0 {
		return
	}
	last := len(s.dirty) - 1
	moved := s.dirty[last]
	s.dirty[e.mark-1], moved.mark = moved, e.mark
	s.dirty[last], s.dirty, e.mark = nil, s.dirty[:last], 0
}

// remove removes an entry that is in the shard.
func (s *shard) remove(e *entry) {
	s.unmark(e)
	s.entries.remove(e)
}

// insert adds an entry, and evicts another if the shard is full; none of
// those in use. The shard is locked.
func (t *table) insert(s *shard, id ident, e *entry, now int64, inUse []place) {
	if s.entries.used >= t.most {
		t.evict(s, now, inUse)
	}
	s.entries.add(id, e)
}

// look is how many entries are compared to evict one.
const look = 32

// evict deletes an expired entry. If it finds none, it deletes, of some
// entries, the one with the fewest hits that the backend does not know; of
// several such, the one with the lowest count, because the others are nearer to
// being denied.
func (t *table) evict(s *shard, now int64, inUse []place) {
	var least *entry
	seen := 0
	for e := range s.entries.walk() {
		if slices.ContainsFunc(inUse, func(p place) bool { return p.entry == e }) {
			continue
		}
		if e.expired(now) {
			s.remove(e)
			return
		}
		if least == nil || e.cheaper(least) {
			least = e
		}
		if seen++; seen == look {
			break
		}
	}
	if least != nil {
		t.lost(least.current.added.diff + least.previous.added.diff)
		s.remove(least)
	}
}

// cheaper reports whether less is lost with e than with other.
func (e *entry) cheaper(other *entry) bool {
	if a, b := e.unsent(), other.unsent(); a != b {
		return a < b
	}
	return e.current.count()+e.previous.count() < other.current.count()+other.previous.count()
}

// sweep deletes expired entries of a shard, a bounded number of them.
func (t *table) sweep(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := 0
	for e := range s.entries.walk() {
		if e.expired(now) {
			s.remove(e)
		}
		if seen++; seen == sweepAtOnce {
			return
		}
	}
}

// sweepAtOnce is how many entries a sweep looks at.
const sweepAtOnce = 1000

func (t *table) len() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.entries.used
		s.mu.Unlock()
	}
	return n
}
