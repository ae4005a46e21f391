package memtable

import (
	"errors"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// ErrClosed is returned once the tables are closed.
var ErrClosed = errors.New("memtable: closed")

// Tables holds the keys of the rules of all limiters. Its methods may be called concurrently.
type Tables struct {
	maxKeys  int64
	maxBytes int64 // that the keys of a rule take at most: see layout.most; 0: any number
	hash     hasher
	shards   []shard
	mask     uint64

	keys    atomic.Int64
	active  atomic.Int64 // rules that hold keys
	evicted atomic.Uint64
	closed  atomic.Bool

	blocked blocked

	mu      sync.Mutex // guards what Bind changes
	rules   map[ruleName]*rule
	ids     int   // ids given so far
	freeIDs []int // ids of retired rules
}

type ruleName struct{ limiter, rule string }

// keyHash stands for a key of a rule. place chooses the shard, and orders the keys of a table. Keys
// whose places are equal are told apart by check: the probability that any two of n keys are equal
// in both is about n²/2¹²⁹, 10⁻²⁷ for a million keys.
type keyHash struct{ place, check uint64 }

// hasher makes hashes that cannot be predicted outside the process, so that no choice of keys makes
// them crowd one place of a table or share a counter.
type hasher struct{ place, check maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// sum returns the hash of a key. place is not 0, which marks an empty slot.
func (h *hasher) sum(key []byte) keyHash {
	return keyHash{max(1, maphash.Bytes(h.place, key)), maphash.Bytes(h.check, key)}
}

// shard is a part of the keys, with a lock of its own. There are so many that moving the table of a
// shard, the longest work under a lock, takes microseconds.
type shard struct {
	mu     sync.Mutex
	tables []*table      // by rule.id
	turn   int           // the table that sweep is at
	cursor int           // its slot
	room   *room         // made when it is needed
	_      [64 - 56]byte // one shard a cache line
}

// room is scratch memory of one decision.
type room struct {
	none [meter.MostFixedWords]uint64 // the state of a key that is not there
	own  meter.Meter                  // that of a quota that is not the limit's
}

// scratch returns the shard's room. The shard is locked.
func (s *shard) scratch() *room {
	if s.room == nil {
		s.room = new(room)
	}
	return s.room
}

const keysPerShard = 2048

// New returns tables for at most maxKeys keys, 1 to 2^31-1, over all rules. If maxBytes is not 0, a
// rule whose states can become large has fewer keys, so that they fit.
func New(maxKeys int, maxBytes int64) *Tables {
	n := 1 << bits.Len(uint((maxKeys-1)/keysPerShard))
	return &Tables{
		maxKeys:  int64(maxKeys),
		maxBytes: maxBytes,
		hash:     newHasher(),
		shards:   make([]shard, n),
		mask:     uint64(n - 1),
		rules:    map[ruleName]*rule{},
	}
}

// Len returns how many keys are held now, including expired keys that have not been removed yet.
func (ts *Tables) Len() int { return int(ts.keys.Load()) }

// MaxKeys returns the highest number of keys that are held.
func (ts *Tables) MaxKeys() int { return int(ts.maxKeys) }

// Evicted returns how many keys were evicted before they expired.
func (ts *Tables) Evicted() uint64 { return ts.evicted.Load() }

// Close forgets all keys and frees their memory. It waits for operations under way. Closing again
// does nothing.
func (ts *Tables) Close() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.closed.Store(true)
	for i := range ts.shards {
		ts.shards[i].close(ts)
	}
	ts.blocked.close()
}

func (s *shard) close(ts *Tables) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if t != nil {
			ts.forget(t)
		}
	}
	s.tables = nil
}
