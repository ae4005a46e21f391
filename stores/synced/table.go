package synced

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slot is the hits of one window.
type slot struct {
	total int64 // in the backend, when it last answered
	sent  int64 // on the way to the backend
	diff  int64 // not sent yet
}

func (s *slot) count() int64 { return max(0, s.total+s.sent+s.diff) }

// giveBack takes hits out of the slot, at most as many as it has.
func (s *slot) giveBack(hits int64) { s.diff -= min(hits, s.count()) }

// entry is the counter of one key of one limit, in the window that it was last
// used in and the one before.
type entry struct {
	id       ident
	name     string // of its counters in the backend
	window   int64
	start    int64 // of the current window
	current  slot
	previous slot

	marked int  // its place in the shard's list of marked entries, from 1; 0: it is not exchanged
	rounds int  // so many exchanges more
	stale  bool // it has not been exchanged since it was marked
}

// roll brings the entry to the window that begins at start. If a clock was set back by
// less than a window, the entry stays.
func (e *entry) roll(start int64) {
	switch start - e.start {
	case 0, -e.window:
		return
	case e.window:
		e.previous, e.current = e.current, slot{}
	default: // what is older than two lengths means nothing any more, nor what is far ahead
		e.previous, e.current = slot{}, slot{}
	}
	e.start = start
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

// diff returns the difference that is to be pushed of the window that begins at start,
// which is one of the entry's.
func (e *entry) diff(start int64) Diff {
	return Diff{e.name, time.Duration(e.window) * time.Microsecond, time.UnixMicro(start), e.at(start).diff}
}

// unsent returns how many hits would be lost with the entry.
func (e *entry) unsent() int64 { return max(0, e.current.diff) + max(0, e.previous.diff) }

func (e *entry) expired(now int64) bool {
	return now >= e.start+2*e.window && e.unsent() == 0 || now >= e.start+3*e.window
}

// ident tells entries apart: the limit's number and two independent hashes of the key.
type ident struct{ limit, a, b uint64 }

func (id ident) shard() uint64 { return id.b % shardCount }

const shardCount = 64

type shard struct {
	mu      sync.Mutex
	entries map[ident]*entry
	marked  []*entry // those that are exchanged
	_       [64]byte // keeps shards out of each other's cache lines
}

type table struct {
	seeds  [2]maphash.Seed
	shards [shardCount]shard
	most   int // entries of a shard
	lost   *atomic.Uint64
}

func newTable(maxKeys int, lost *atomic.Uint64) *table {
	t := &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: max(1, maxKeys/shardCount), lost: lost}
	for i := range t.shards {
		t.shards[i].entries = map[ident]*entry{}
	}
	return t
}

func (t *table) ident(limit uint64, key []byte) ident {
	return ident{limit, maphash.Bytes(t.seeds[0], key), maphash.Bytes(t.seeds[1], key)}
}

func (t *table) shard(id ident) *shard { return &t.shards[id.shard()] }

// markedFor is how many exchanges an entry takes part in after its last use.
const markedFor = 3

// mark notes that an entry has been used, and is to be exchanged. It reports whether the
// entry was not exchanged before. The shard is locked.
func (s *shard) mark(e *entry) bool {
	e.rounds = markedFor
	if e.marked != 0 {
		return false
	}
	s.marked = append(s.marked, e)
	e.marked, e.stale = len(s.marked), true
	return true
}

// unmark notes that an entry is not to be exchanged. The last marked one takes its place.
func (s *shard) unmark(e *entry) {
	if e.marked == 0 {
		return
	}
	last := len(s.marked) - 1
	moved := s.marked[last]
	s.marked[e.marked-1], moved.marked = moved, e.marked
	s.marked[last], s.marked, e.marked = nil, s.marked[:last], 0
}

func (s *shard) remove(e *entry) {
	s.unmark(e)
	delete(s.entries, e.id)
}

// look is how many entries an insertion examines.
const look = 8

// insert adds an entry. It removes expired entries that it comes across and, if the shard
// is full, evicts another; none of those in use. The shard is locked.
func (t *table) insert(s *shard, e *entry, now int64, inUse []place) {
	var least *entry
	seen := 0
	for _, other := range s.entries { // begins at random
		switch {
		case slices.ContainsFunc(inUse, func(p place) bool { return p.entry == other }):
			continue
		case other.expired(now):
			s.remove(other)
		case least == nil || other.cheaper(least):
			least = other
		}
		if seen++; seen == look {
			break
		}
	}
	if len(s.entries) >= t.most && least != nil {
		t.lost.Add(uint64(least.unsent())) //nolint:gosec // not negative
		s.remove(least)
	}
	s.entries[e.id] = e
}

// cheaper reports whether e is evicted rather than other: it has fewer hits that the
// backend does not know, or as many, and a lower count, so that it is farther from being
// denied.
func (e *entry) cheaper(other *entry) bool {
	if a, b := e.unsent(), other.unsent(); a != b {
		return a < b
	}
	return e.current.count()+e.previous.count() < other.current.count()+other.previous.count()
}

func (t *table) len() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}
