package core

import (
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/names"
)

// DefaultMaxKeys is the number of keys that a Memory holds at most if
// MemoryConfig.MaxKeys is 0.
const DefaultMaxKeys = 1_000_000

// defaultMaxBytes is how much the keys of a rule take at most in a Memory without a MaxKeys.
const defaultMaxBytes = 256 << 20

// MemoryConfig configures [NewMemory]. The zero value works.
type MemoryConfig struct {
	// MaxKeys is the most keys that are held at a time, over all limiters and
	// rules: from 1 to 2^31-1. 0 means DefaultMaxKeys, of which a rule has fewer if their
	// states can become large: as many as fit into 256 MB with the limits' own quotas, but
	// about 8,000 in any case. A key is one key of one
	// rule, whatever the number of its limits. It must be at least the number
	// of keys of one request: keys of a request beyond it are not counted.
	//
	// It bounds memory. With the default algorithm a key takes about
	// 23 + 18 × limits bytes. A key takes more for each of these limits: with
	// SlidingLog 8 bytes for each hit that the log has held at a time and 8
	// more, rounded up to a power of two, from 64 bytes to 128 KiB (at a Quota
	// of MaxLogQuota), until the log has expired and an insertion examines it;
	// with BucketedWindow 4 bytes for each bucket and 24 more, rounded up to a
	// power of two, at most 32 KiB. One take may charge the whole Quota, so
	// one request of a new key may take all of that.
	MaxKeys int
	// Clock returns the time. nil: the process's monotonic clock, which does
	// not follow changes of the wall clock. It is called before anything is
	// locked, and concurrently. If it panics, nothing has been charged.
	Clock func() time.Time
}

// Memory is the store that counts in this process. Its methods, and those of
// what Bind returns, may be called concurrently.
//
// It has no goroutine. Each insertion of a key examines some slots of one shard
// and removes the keys that have expired. The text of a key is not kept, but
// 128 bits of a hash of it, with random seeds of each Memory's own.
//
// # When it is full
//
// A Memory never holds more than MaxKeys keys. At MaxKeys, a new key evicts
// another one of its shard, after the same bounded work whatever the states
// are:
//
//   - A rule's share is MaxKeys divided by the number of rules that hold keys. A
//     rule may hold more than its share while others need less. A new key of a
//     rule that holds its share or more evicts a key of the same rule. Otherwise
//     it evicts a key of the largest rule above its share. So a flood of keys on
//     one rule evicts no key of a rule below its share. The exception: a shard,
//     which holds 1,024 keys or more on average, has no key of the rule that
//     should give one up. That is improbable with fewer than 50 rules.
//   - Within the rule, up to eight keys are examined. An expired key is evicted
//     first, then the key that has used the smallest share of its limits.
//   - A denied key, one of whose limits has no hit left, is evicted only if all
//     keys of its rule in the shard are denied: of those examined, the one that
//     recovers soonest. A key counts as denied from the hit that uses its limit
//     up. That it has recovered is noticed little by little, as insertions
//     examine slots.
//   - A take does not evict a key that it decides on.
//
// So a client cannot end the denial of its own key with made-up keys unless it
// uses up the limits of about as many keys as the rule's share: with the
// default MaxKeys, three rules and a quota of 5, more than 1.6 million hits
// before the denial ends by itself. With a quota of 1, each made-up key takes
// one hit. Keys with a smaller count never end it, however many they are.
//
// Counters are lost when the process ends.
type Memory struct {
	now    func() int64
	tables *memtable.Tables
	names  *names.Owner
}

// NewMemory returns an empty store. The error wraps [ErrConfig] and names the
// field and its value.
func NewMemory(c MemoryConfig) (*Memory, error) {
	if c.MaxKeys < 0 || c.MaxKeys > 1<<31-1 {
		return nil, fmt.Errorf("%w: MaxKeys: %d: must be from 1 to 2^31-1, or 0 for %d", ErrConfig, c.MaxKeys, DefaultMaxKeys)
	}
	maxBytes := int64(0)
	if c.MaxKeys == 0 {
		c.MaxKeys, maxBytes = DefaultMaxKeys, defaultMaxBytes
	}
	return &Memory{now: meter.Clock(c.Clock), tables: memtable.New(c.MaxKeys, maxBytes), names: names.New("", true)}, nil
}

// Len returns how many keys are held now, including expired keys that have not
// been removed yet.
func (m *Memory) Len() int { return m.tables.Len() }

// Evicted returns how many keys that had not expired have made room for others.
// If it grows, MaxKeys is too small for the keys in use, or a client makes keys
// up.
func (m *Memory) Evicted() uint64 { return m.tables.Evicted() }

// Close forgets all counters and frees their memory. It may be called while the
// store is in use: it waits for operations under way, and every operation after
// it fails with an error that wraps [ErrClosed]. Closing again does nothing.
// Close always returns nil.
func (m *Memory) Close() error {
	m.tables.Close()
	m.names.Release()
	return nil
}
