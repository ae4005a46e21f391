package denycache

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// table holds the denied keys of one limiter's rules: two hashes of a key, not
// the key.
type table struct {
	seeds  [2]maphash.Seed
	most   int // keys in a shard
	shards [shards]shard
	// A key's generation is raised by each Charge, Reset and Refund of it, and by
	// an admitted take of it if denials of it are remembered or the take has quotas
	// of its own. A denial is remembered only if the generation has not changed since
	// the store was asked: otherwise the denial might be out of date. Some keys
	// share a generation.
	generations [generations]atomic.Uint64
}

const (
	shards      = 64
	generations = 1024
)

type shard struct {
	mu     sync.Mutex
	denied map[key][]denial
}

type key struct{ a, b uint64 }

// denial is a denial by the store of a key, a cost and quotas.
type denial struct {
	at    int64 // the time before the store was asked
	ask   int64 // from this time on, one caller asks the store again
	until int64 // until this time, the other callers are denied
	cost  int64
	// quotas are those of the batch: nil means the limits' own.
	quotas []int64
	// results are those of the rule's limits at the time at.
	results []core.Result
}

// of reports whether the denial is one of the item's cost and quotas.
func (d *denial) of(it *core.Item) bool {
	return d.cost == it.Cost && slices.Equal(d.quotas, it.Quotas)
}

// find returns the denial of an item's cost and quotas, or -1.
func find(list []denial, it *core.Item) int {
	return slices.IndexFunc(list, func(d denial) bool { return d.of(it) })
}

// maxCosts is the highest number of pairs of a cost and quotas for which a key's
// denials are remembered.
const maxCosts = 4

func newTable(maxKeys int) *table {
	t := &table{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: (maxKeys + shards - 1) / shards}
	for i := range t.shards {
		t.shards[i].denied = map[key][]denial{}
	}
	return t
}

func (t *table) key(it *core.Item) key {
	// The rule is mixed in by an odd factor: two rules collide only if both
	// hashes differ by just that.
	rule := uint64(it.Rule) * 0x9e3779b97f4a7c15
	return key{maphash.Bytes(t.seeds[0], it.Key) ^ rule, maphash.Bytes(t.seeds[1], it.Key) + rule}
}

func (t *table) shard(k key) *shard { return &t.shards[k.a%shards] }

func (t *table) generationOf(k key) *atomic.Uint64 { return &t.generations[k.b%generations] }

// generation changes if that of one of the items does.
func (t *table) generation(items []core.Item) (sum uint64) {
	for i := range items {
		sum += t.generationOf(t.key(&items[i])).Load()
	}
	return sum
}

// answer is what the table knows of an item.
type answer int

const (
	unknown answer = iota
	denied         // the results are filled in
	stale          // the item was denied a while ago: the caller must ask the store again
)

// recall fills in the item's results if the item is known to be denied.
func (t *table) recall(it *core.Item, now int64) answer {
	k := t.key(it)
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.denied[k]
	i := find(list, it)
	if i < 0 {
		return unknown
	}
	d := &list[i]
	switch {
	case now >= d.until || now < d.at: // over, or the clock was set back
		s.remove(k, i)
		return unknown
	case now >= d.ask:
		d.ask = d.until // one caller is enough
		return stale
	}
	passed := time.Duration(now-d.at) * time.Microsecond
	for j := range it.Results {
		it.Results[j] = later(d.results[j], passed)
	}
	return denied
}

// later returns a result as it is after a time in which nothing was charged.
// Remaining is left as it was: it may have grown.
func later(r core.Result, passed time.Duration) core.Result {
	if r.RetryAfter != core.Never {
		r.RetryAfter = max(0, r.RetryAfter-passed)
	}
	r.Allowed = r.RetryAfter == 0
	r.ResetAfter = max(0, r.ResetAfter-passed)
	if r.MoreAfter > 0 {
		r.MoreAfter = max(time.Microsecond, r.MoreAfter-passed)
	}
	return r
}

// remember notes that the store has denied the item of the batch. generation is
// that of the batch before the store was asked.
func (t *table) remember(batch *core.Batch, it *core.Item, at, ask, until int64, generation uint64) {
	k := t.key(it)
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.generation(batch.Items) != generation {
		return
	}
	list, found := s.denied[k]
	if !found && len(s.denied) >= t.most {
		s.makeRoom(at)
	}
	i := find(list, it)
	switch {
	case i >= 0:
	case len(list) < maxCosts:
		i = len(list)
		list = append(list, denial{})
	default:
		i = 0
		for j := range list {
			if list[j].until < list[i].until {
				i = j
			}
		}
	}
	list[i] = denial{at: at, ask: ask, until: until, cost: it.Cost, quotas: append(list[i].quotas[:0], it.Quotas...), results: append(list[i].results[:0], it.Results...)}
	s.denied[k] = list
}

// makeRoom evicts one key. It looks at a few keys, in the map's random order,
// and evicts the one whose denial ends first.
func (s *shard) makeRoom(now int64) {
	var first key
	var firstUntil int64
	seen := 0
	for k, list := range s.denied {
		until := list[0].until
		for i := range list {
			until = max(until, list[i].until)
		}
		if seen == 0 || until < firstUntil {
			first, firstUntil = k, until
		}
		if seen++; seen == 8 || until <= now {
			break
		}
	}
	delete(s.denied, first)
}

// remove removes the denial at i of a key.
func (s *shard) remove(k key, i int) {
	if list := slices.Delete(s.denied[k], i, i+1); len(list) > 0 {
		s.denied[k] = list
	} else {
		delete(s.denied, k)
	}
}

// forget forgets all denials of a key, and keeps takes that are under way from
// adding theirs.
func (t *table) forget(it *core.Item) {
	k := t.key(it)
	s := t.shard(k)
	t.generationOf(k).Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.denied, k)
}

// forgetKnown is forget, but leaves the generation unchanged if no denial of
// the key is remembered. So takes of the many keys below their limits do not
// prevent denials of other keys from being remembered.
func (t *table) forgetKnown(it *core.Item) {
	k := t.key(it)
	s := t.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.denied[k]; known {
		t.generationOf(k).Add(1)
		delete(s.denied, k)
	}
}

// forgetAll forgets all denials, and those that are being asked for.
func (t *table) forgetAll() {
	for i := range t.generations {
		t.generations[i].Add(1)
	}
	for i := range t.shards {
		t.shards[i].clear()
	}
}

func (s *shard) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.denied)
}
