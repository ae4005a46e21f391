package synced

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// slot is the hits of one window.
type slot struct {
	known int64 // in the backend when it last answered, and those sent since
	diff  int64 // not sent yet
}

func (s *slot) count() int64 { return max(0, s.known+s.diff) }

// entry is the counter of one key of one limit, in the window that it was last
// used in and the one before. It is a cache line.
type entry struct {
	id       uint64 // 0: a free place of the table
	start    int64  // of the current window
	current  slot
	previous slot
	stored   *stored
	marked   uint32 // its place in the shard's list of marked entries, from 1; 0: it is not exchanged
	rounds   int8   // so many exchanges more
	stale    bool   // it has not been exchanged since it was marked
}

// stored tells an entry's counters in the backend apart from others.
type stored struct {
	key    string
	window int64
}

// roll brings the entry to the window that begins at start, which is another one. If a
// clock was set back by less than a window, the entry stays.
func (e *entry) roll(start int64) {
	if start == e.start-e.stored.window {
		return
	}
	e.previous = slot{} // what is older than two lengths, or far ahead, means nothing any more
	if start == e.start+e.stored.window {
		e.previous = e.current
	}
	e.current, e.start = slot{}, start
}

// at returns the slot of the window that begins at start, nil for others, or if e is nil.
func (e *entry) at(start int64) *slot {
	switch {
	case e == nil:
	case start == e.start:
		return &e.current
	case start == e.start-e.stored.window:
		return &e.previous
	}
	return nil
}

// diff returns the difference that is to be pushed of the window that begins at start,
// which is one of the entry's.
func (e *entry) diff(start int64) Diff {
	return Diff{e.stored.key, time.Duration(e.stored.window) * time.Microsecond, time.UnixMicro(start), e.at(start).diff}
}

// unsent returns how many hits would be lost with the entry.
func (e *entry) unsent() int64 { return max(0, e.current.diff) + max(0, e.previous.diff) }

func (e *entry) expired(now int64) bool {
	return now >= e.start+2*e.stored.window && e.unsent() == 0 || now >= e.start+3*e.stored.window
}

const shardCount = 64

// shard is a part of the table: a hash table with linear probing. Pointers to entries are
// valid while it is locked and no entry is inserted.
type shard struct {
	mu      sync.Mutex
	entries []entry
	used    int
	hand    int      // where the last insertion has looked for an entry to evict
	marked  []uint64 // ids of those that are exchanged
	_       [64]byte // keeps shards out of each other's cache lines
}

func (s *shard) home(id uint64) int {
	i, _ := bits.Mul64(id, uint64(len(s.entries)))
	return int(i) //nolint:gosec // below len
}

func (s *shard) next(i int) int {
	if i++; i < len(s.entries) {
		return i
	}
	return 0
}

// find returns an entry, nil if there is none.
func (s *shard) find(id uint64) *entry {
	if s.used == 0 {
		return nil
	}
	for i := s.home(id); s.entries[i].id != 0; i = s.next(i) {
		if s.entries[i].id == id {
			return &s.entries[i]
		}
	}
	return nil
}

// add adds an entry that is not in the table.
func (s *shard) add(e entry) {
	if 4*(s.used+1) > 3*len(s.entries) {
		old := s.entries
		s.entries, s.used = make([]entry, max(8, len(old)+len(old)/2)), 0
		for i := range old {
			if old[i].id != 0 {
				s.add(old[i])
			}
		}
	}
	i := s.home(e.id)
	for s.entries[i].id != 0 {
		i = s.next(i)
	}
	s.entries[i] = e
	s.used++
}

// remove removes the entry at a place. It moves others forward, so that no search for them
// ends at the free place.
func (s *shard) remove(i int) {
	s.unmark(&s.entries[i])
	for j := s.next(i); s.entries[j].id != 0; j = s.next(j) {
		if n := len(s.entries); (j-s.home(s.entries[j].id)+n)%n >= (j-i+n)%n { // its search passes i
			s.entries[i] = s.entries[j]
			i = j
		}
	}
	s.entries[i] = entry{}
	s.used--
}

// markedFor is how many exchanges an entry takes part in after its last use.
const markedFor = 3

// mark notes that an entry has been used, and is to be exchanged. It reports whether the
// entry was not exchanged before.
func (s *shard) mark(e *entry) bool {
	e.rounds = markedFor
	if e.marked != 0 {
		return false
	}
	s.marked = append(s.marked, e.id)
	e.marked, e.stale = uint32(len(s.marked)), true //nolint:gosec // at most MaxKeys
	return true
}

// unmark notes that an entry is not to be exchanged. The last marked one takes its place.
func (s *shard) unmark(e *entry) {
	if e.marked == 0 {
		return
	}
	last := len(s.marked) - 1
	s.marked[e.marked-1] = s.marked[last]
	s.find(s.marked[last]).marked = e.marked
	s.marked, e.marked = s.marked[:last], 0
}

type table struct {
	seed   maphash.Seed
	shards [shardCount]shard
	most   int // entries of a shard
	used   atomic.Int64
	lost   *atomic.Uint64
}

func newTable(maxKeys int, lost *atomic.Uint64) *table {
	return &table{seed: maphash.MakeSeed(), most: max(1, maxKeys/shardCount), lost: lost}
}

// id tells the entries apart: it is a hash of the key, and another one for each limit.
func (t *table) id(limit uint64, key []byte) uint64 {
	return max(1, maphash.Bytes(t.seed, key)^limit*0x9e3779b97f4a7c15)
}

func (t *table) shard(id uint64) *shard { return &t.shards[id%shardCount] }

// look is how many places an insertion examines.
const look = 16

// insert adds an entry. It removes an expired one that it comes across and, if the shard is
// full, evicts another; none of those in use.
func (t *table) insert(s *shard, e entry, now int64, inUse []place) {
	before, least := s.used, -1
	for range min(look, len(s.entries)) {
		s.hand = s.next(s.hand)
		other := &s.entries[s.hand]
		if other.id == 0 || slices.ContainsFunc(inUse, func(p place) bool { return p.id == other.id }) {
			continue
		}
		if other.expired(now) {
			s.remove(s.hand)
			least = -1
			break
		}
		if s.used >= t.most && (least < 0 || other.cheaper(&s.entries[least])) {
			least = s.hand
		}
	}
	if least >= 0 {
		t.lost.Add(uint64(s.entries[least].unsent())) //nolint:gosec // not negative
		s.remove(least)
	}
	s.add(e)
	t.used.Add(int64(s.used - before))
}

// cheaper reports whether e is evicted rather than other: it has fewer hits that the backend
// does not know, or as many, and a lower count, so that it is farther from being denied.
func (e *entry) cheaper(other *entry) bool {
	if a, b := e.unsent(), other.unsent(); a != b {
		return a < b
	}
	return e.current.count()+e.previous.count() < other.current.count()+other.previous.count()
}
