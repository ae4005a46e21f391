package denycache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// table holds the refused keys of one limiter's rules: two hashes of a key, not
// the key.
type table struct {
	// generation is raised by each Reset and Refund. A refusal is remembered
	// only where it has not been raised since the store was asked: it might be
	// from before.
	generation atomic.Uint64
	seeds      [2]maphash.Seed
	most       int // of a shard
	shards     [shards]shard
}

const shards = 64

type shard struct {
	mu      sync.Mutex
	refused map[key]refusal
}

type key struct{ a, b uint64 }

// refusal is what the store has said of a key.
type refusal struct {
	at, until int64
	cost      int64
	results   []core.Result
}

func newTable(maxKeys int) *table {
	t := &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: (maxKeys + shards - 1) / shards}
	for i := range t.shards {
		t.shards[i].refused = map[key]refusal{}
	}
	return t
}

func (t *table) key(it *core.Item) key {
	// The rule is mixed in by an odd factor: for two rules to meet, both hashes
	// would have to differ by just that.
	rule := uint64(it.Rule) * 0x9e3779b97f4a7c15
	return key{maphash.Bytes(t.seeds[0], it.Key) ^ rule, maphash.Bytes(t.seeds[1], it.Key) + rule}
}

func (t *table) shard(k key) *shard { return &t.shards[k.a%shards] }

// recall fills in the item's results where it is known to be refused.
func (t *table) recall(k key, it *core.Item, now int64) bool {
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.refused[k]
	if !found || it.Cost < r.cost {
		return false
	}
	if now >= r.until || now < r.at { // over, or the clock was set back
		delete(s.refused, k)
		return false
	}
	passed := time.Duration(now-r.at) * time.Microsecond
	for i := range it.Results {
		said := r.results[i]
		said.ResetAfter = max(0, said.ResetAfter-passed)
		said.MoreAfter = max(0, said.MoreAfter-passed)
		said.RetryAfter = max(0, said.RetryAfter-passed)
		said.Allowed = said.RetryAfter == 0
		it.Results[i] = said
	}
	return true
}

func (t *table) remember(k key, it *core.Item, at, until int64, generation uint64) {
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.generation.Load() != generation {
		return
	}
	old, found := s.refused[k]
	if found && old.cost < it.Cost && old.until > at {
		return // what refuses less refuses more
	}
	if !found && len(s.refused) >= t.most {
		s.makeRoom(at)
	}
	s.refused[k] = refusal{at: at, until: until, cost: it.Cost, results: append(old.results[:0], it.Results...)}
}

// makeRoom removes one key: of the first few that come, in the map's random
// order, the one whose wait is over first.
func (s *shard) makeRoom(now int64) {
	var first key
	var until int64
	seen := 0
	for k, r := range s.refused {
		if seen == 0 || r.until < until {
			first, until = k, r.until
		}
		if seen++; seen == 8 || r.until <= now {
			break
		}
	}
	delete(s.refused, first)
}

func (t *table) forget(k key) {
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, k)
}
