package synced

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// slot is the hits of one window.
type slot struct {
	known int64 // in the backend when it last answered, and those sent since
	diff  int64 // not sent yet
}

func (s *slot) count() int64 { return max(0, s.known+s.diff) }

// entry is the counter of one key of one limit, in the window that it was last
// used in and the one before.
type entry struct {
	id       uint64
	start    int64 // of the current window
	current  slot
	previous slot
	key      string // of its counters in the backend
	window   int64
	rounds   int8 // exchanges that it still takes part in
	stale    bool // no exchange since it was marked
}

// roll brings the entry to the window that begins at start, which is another one. If a
// clock was set back by less than a window, the entry stays.
func (e *entry) roll(start int64) {
	if start == e.start-e.window {
		return
	}
	e.previous = slot{} // what is older than two lengths, or far ahead, means nothing any more
	if start == e.start+e.window {
		e.previous = e.current
	}
	e.current, e.start = slot{}, start
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

// diff returns the unpushed difference of the window that begins at start, one of the entry's.
func (e *entry) diff(start int64) Diff {
	return Diff{e.key, time.Duration(e.window) * time.Microsecond, time.UnixMicro(start), e.at(start).diff}
}

// unsent returns how many hits would be lost with the entry.
func (e *entry) unsent() int64 { return max(0, e.current.diff) + max(0, e.previous.diff) }

func (e *entry) expired(now int64) bool {
	return now >= e.start+2*e.window && e.unsent() == 0 || now >= e.start+3*e.window
}

const shardCount = 64

// shard is a part of the table. Entries are used only while it is locked.
type shard struct {
	mu      sync.Mutex
	entries map[uint64]*entry
	marked  map[*entry]struct{} // those that are exchanged
	_       [64]byte            // keeps shards out of each other's cache lines
}

func (s *shard) remove(e *entry) {
	delete(s.entries, e.id)
	delete(s.marked, e)
}

// markedFor is how many exchanges an entry takes part in after its last use.
const markedFor = 3

// mark makes an entry that has been used take part in the next exchanges. It reports whether
// the entry took part in none before.
func (s *shard) mark(e *entry) bool {
	first := e.rounds == 0
	if e.rounds = markedFor; first {
		s.marked[e], e.stale = struct{}{}, true
	}
	return first
}

type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	most   int // entries of a shard
}

func newTable(maxKeys int) *table {
	t := &table{seed: maphash.MakeSeed(), most: max(1, maxKeys/shardCount)}
	for i := range t.shards {
		t.shards[i].entries, t.shards[i].marked = map[uint64]*entry{}, map[*entry]struct{}{}
	}
	return t
}

// number returns a number that identifies a limit.
func (t *table) number(limit string) uint64 {
	return maphash.String(t.seed, limit) * 0x9e3779b97f4a7c15
}

// id identifies an entry: a hash of the key, another one for each limit.
func (t *table) id(number uint64, key []byte) uint64 { return maphash.Bytes(t.seed, key) ^ number }

func (t *table) shard(id uint64) *shard { return &t.shards[id%shardCount] }

// keys returns the number of entries.
func (t *table) keys() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

// look is how many entries an insertion examines.
const look = 16

// insert adds an entry. It examines some others, none of those in use: it removes the expired
// ones and, if the shard is still full, evicts another. It returns how many hits are lost with that.
func (t *table) insert(s *shard, e *entry, now int64, inUse []place) (lost int64) {
	examined := 0
	var least *entry
	for _, other := range s.entries { // begins at a random one
		if examined++; examined > look {
			break
		}
		switch {
		case slices.ContainsFunc(inUse, func(p place) bool { return p.id == other.id }):
		case other.expired(now):
			s.remove(other)
		case least == nil || other.cheaper(least):
			least = other
		}
	}
	if least != nil && len(s.entries) >= t.most {
		lost = least.unsent()
		s.remove(least)
	}
	s.entries[e.id] = e
	return lost
}

// cheaper reports whether e is evicted rather than other: it has fewer hits that the backend
// does not know, or as many, and a lower count, so that it is farther from being denied.
func (e *entry) cheaper(other *entry) bool {
	if a, b := e.unsent(), other.unsent(); a != b {
		return a < b
	}
	return e.current.count()+e.previous.count() < other.current.count()+other.previous.count()
}
