package core

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxKeys is the number of keys that a Memory holds where MemoryConfig
// does not say.
const DefaultMaxKeys = 1_000_000

// MemoryConfig configures [NewMemory]. The zero value works.
type MemoryConfig struct {
	// MaxKeys is the most keys that are held at a time, over all limiters and
	// rules; from 1 to 2^31−1, 0 means DefaultMaxKeys. A key is one key of one
	// rule, whatever the number of its limits. With the default algorithm it
	// takes about 23 + 18 × limits bytes.
	MaxKeys int
	// Clock tells the time. nil: the process's monotonic clock, which no
	// change of the wall clock moves. It is called once for each operation,
	// while a part of the store is locked: it must neither call the store nor
	// panic.
	Clock func() time.Time
}

// Memory is the store that counts in this process. Its methods, and those of
// what Bind returns, may be called concurrently.
//
// It has no goroutine: what has expired is removed little by little as new
// keys arrive. A key's text is not kept, but 128 bits of two hashes of it,
// seeded at random for each Memory. When it holds MaxKeys keys, a new key
// takes the place of an expired one, or of the one that has used least of its
// limits, among some; a key that is being refused goes only where all others in
// its part of the table are refused too, the one first that would be let in
// first. So a flood of keys cannot grow the store, and does not release a key
// that is refused while there are others; with a limit of one hit, after which
// every key is refused, it can.
//
// Counters are lost when the process ends.
type Memory struct {
	maxKeys int64
	now     func() int64
	hash    hasher
	shards  []memoryShard
	mask    uint64

	keys    atomic.Int64
	active  atomic.Int64 // rules that hold keys
	evicted atomic.Uint64
	closed  atomic.Bool

	mu      sync.Mutex // guards what Bind changes
	rules   map[ruleName]*memoryRule
	names   map[string]bool
	ids     int   // ids given so far
	freeIDs []int // ids of retired rules
}

type ruleName struct{ limiter, rule string }

// memoryShard is a part of the keys, with a lock of its own. A store has so
// many that moving one shard's table, the longest thing done under a lock,
// takes microseconds.
type memoryShard struct {
	mu     sync.Mutex
	tables []*memoryTable // by memoryRule.id
	turn   int            // the table that sweep is at
	cursor int            // the slot of it
	_      [64 - 48]byte  // one shard a cache line
}

const keysPerShard = 2048

// NewMemory returns an empty store. The error wraps [ErrConfig] and names the
// field and its value.
func NewMemory(c MemoryConfig) (*Memory, error) {
	if c.MaxKeys < 0 || c.MaxKeys > 1<<31-1 {
		return nil, fmt.Errorf("%w: MaxKeys: %d: must be from 1 to 2^31-1, or 0 for %d", ErrConfig, c.MaxKeys, DefaultMaxKeys)
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	n := 1 << bits.Len(uint((c.MaxKeys-1)/keysPerShard))
	m := &Memory{
		maxKeys: int64(c.MaxKeys),
		now:     microClock(c.Clock),
		hash:    newHasher(),
		shards:  make([]memoryShard, n),
		mask:    uint64(n - 1),
		rules:   map[ruleName]*memoryRule{},
		names:   map[string]bool{},
	}
	return m, nil
}

// microClock returns a clock of microseconds since the Unix epoch.
func microClock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + int64(time.Since(start)/time.Microsecond) }
}

// Len returns how many keys are held now, those included that have expired and
// are not yet removed.
func (m *Memory) Len() int { return int(m.keys.Load()) }

// MemoryStats are figures about a Memory since it was made.
type MemoryStats struct {
	Keys    int    // held now, as Len
	MaxKeys int    // the most that are ever held
	Evicted uint64 // keys that had not expired and made room for others
}

// Stats returns the store's figures. A growing Evicted says that MaxKeys is
// too small for the keys in use, or that somebody makes them up.
func (m *Memory) Stats() MemoryStats {
	return MemoryStats{Keys: m.Len(), MaxKeys: int(m.maxKeys), Evicted: m.evicted.Load()}
}

// Close forgets all counters and frees their memory. Every later call gives an
// error that wraps [ErrClosed]. Closing again does nothing. Close never fails.
func (m *Memory) Close() error {
	m.closed.Store(true)
	for i := range m.shards {
		m.shards[i].close(m)
	}
	return nil
}

func (s *memoryShard) close(m *Memory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		if t != nil {
			m.forget(t)
		}
	}
	s.tables = nil
}
