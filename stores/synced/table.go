package synced

import (
	"hash/maphash"
	"sync"
)

// slot is the count of one window: what the backend had when it was last
// asked, what is on its way there, and what is yet to be pushed.
type slot struct{ total, sent, diff int64 }

func (s slot) count() int64 { return s.total + s.sent + s.diff }

// entry is the counter of one key of one limit, in the window that it was last
// used in and the one before.
type entry struct {
	name         string // the backend's
	window       int64
	start        int64
	current      slot
	previous     slot
	dirty, fresh bool // is to be exchanged; has never been
	rounds       int  // so many exchanges more
}

// roll brings the entry to the window that begins at start. A start that lies
// before its own is that of a clock that was set back: the entry stays.
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

// unsent says that hits would be lost with the entry.
func (e *entry) unsent() int64 {
	return e.current.diff + e.previous.diff
}

// ident tells entries apart: two independent hashes of the key, mixed with the
// limit's number.
type ident struct{ a, b uint64 }

const shardCount = 64

type shard struct {
	mu      sync.Mutex
	entries map[ident]*entry
	dirty   []ident
	_       [64]byte // keeps shards out of each other's cache lines
}

type table struct {
	seeds  [2]maphash.Seed
	shards [shardCount]shard
	most   int // entries of a shard
	lost   func(hits int64)
}

func newTable(maxKeys int, lost func(int64)) *table {
	t := &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: max(1, maxKeys/shardCount), lost: lost}
	for i := range t.shards {
		t.shards[i].entries = map[ident]*entry{}
	}
	return t
}

func (t *table) ident(limit uint64, key []byte) ident {
	return ident{maphash.Bytes(t.seeds[0], key) ^ limit*0x9e3779b97f4a7c15, maphash.Bytes(t.seeds[1], key) ^ limit*0xc2b2ae3d27d4eb4f}
}

func (id ident) shard() uint64 { return id.b % shardCount }

// markedFor is for how many exchanges an entry is part of them after it was
// last used: what others push in the interval after is heard of too.
const markedFor = 3

// mark notes that an entry is to be exchanged. The shard is locked.
func (s *shard) mark(id ident, e *entry) {
	e.rounds = markedFor
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, id)
	}
}

// insert makes an entry, and room for it. The shard is locked.
func (t *table) insert(s *shard, id ident, e *entry, now int64) {
	if len(s.entries) >= t.most {
		t.evict(s, now)
	}
	s.entries[id] = e
}

// look is how many entries are looked at for one that can go.
const look = 32

func (t *table) evict(s *shard, now int64) {
	var worst ident
	var least *entry
	seen := 0
	for id, e := range s.entries { // begins at random
		if e.expired(now) {
			delete(s.entries, id)
			return
		}
		if least == nil || e.unsent() < least.unsent() {
			worst, least = id, e
		}
		if seen++; seen == look {
			break
		}
	}
	if least != nil {
		t.lost(max(0, least.unsent()))
		delete(s.entries, worst)
	}
}

func (e *entry) expired(now int64) bool {
	return now >= e.start+2*e.window && e.unsent() == 0 || now >= e.start+3*e.window
}

// sweep deletes expired entries of a shard, a bounded number of them.
func (t *table) sweep(s *shard, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := 0
	for id, e := range s.entries {
		if e.expired(now) {
			delete(s.entries, id)
		}
		if seen++; seen == 1000 {
			return
		}
	}
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
