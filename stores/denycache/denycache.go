// Package denycache remembers denials in the process: a key that a shared store has denied is
// denied again without asking the store, for a second at most. A flood from a client over its limit
// then costs the store about one command a second, however many requests the flood has.
//
// redisstore and memcachedstore contain it, switched on. For another store:
//
//	store, err := denycache.New(shared, denycache.Config{})
//
// Do not use it for counters in the process: they are faster than the cache.
//
// It remembers denials of cost 1 with the limits' own quotas, for at most 65,536 keys of each
// limiter, in about 200 bytes a key. All other requests ask the store.
//
// While a key is denied nothing is charged to it, so RetryAfter and ResetAfter only grow shorter. A
// request asks the store again when the wait is over, or after this process has charged, refunded,
// granted, blocked or reset the key. Changes by another process take effect after at most a second
// (Config.Longest). Remaining is that of the remembered denial: it may have grown since. If one of
// several keys is denied from the cache, core.Item.Unknown is set for the others, and the decision
// leaves out their limits.
//
// A denial that may end at any time is not remembered: that of a fallback (core.Batch.Degraded), or
// of several keys by a store without core.Guarantees.OneStep, because hits that are about to be
// refunded may have caused it.
package denycache

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/internal/nilcheck"
)

// DefaultLongest is Config.Longest if it is 0.
const DefaultLongest = time.Second

// Config configures [New]. The zero value works.
type Config struct {
	// Longest is the longest time for which a denial is remembered: 1 ms or more; 0 means
	// DefaultLongest. A longer time costs the store fewer commands, and delays the effect of a
	// reset by another process.
	Longest time.Duration
	// Clock returns the time; nil: the process's monotonic clock. It must run as fast as the
	// store's clock, but need not show the same time.
	Clock func() time.Time
}

// Store is a [core.Store] that remembers the denials of another. It is made by [New]. Its methods,
// and those of the Counters that Open returns, may be called concurrently.
type Store struct {
	store   core.Store
	longest time.Duration
	now     func() int64
}

// New returns a store that asks store and remembers its denials. The error wraps [core.ErrConfig]
// and names the field.
func New(store core.Store, c Config) (*Store, error) {
	if c.Longest == 0 {
		c.Longest = DefaultLongest
	}
	switch {
	case nilcheck.IsNil(store):
		return nil, fmt.Errorf("%w: Store: %T: is nil: must be a store", core.ErrConfig, store)
	case c.Longest < time.Millisecond:
		return nil, fmt.Errorf("%w: Longest: %v: must be 1ms or more, or 0 for %v", core.ErrConfig, c.Longest, DefaultLongest)
	}
	return &Store{store: store, longest: c.Longest, now: meter.Clock(c.Clock)}, nil
}

// Guarantees returns those of the other store.
func (s *Store) Guarantees() core.Guarantees { return s.store.Guarantees() }

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	inner, err := s.store.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	return newCounters(s, inner), nil
}

// maxKeys is how many denied keys are remembered at most.
const maxKeys = 65_536

// counters are the Counters of a Store, and the denied keys of their rules.
type counters struct {
	*Store
	inner core.Counters
	seeds [2]maphash.Seed

	mu     sync.Mutex
	denied map[key]*denial
	// A key's generation is raised whenever its denial is forgotten. A denial is remembered only if
	// the generation has not changed since the store was asked: otherwise it may be out of date.
	// Some keys share a generation.
	generations [1024]uint64
}

// key is a key of a rule: two hashes of its text.
type key struct {
	rule int
	hash [2]uint64
}

// denial is a denial of a key by the store.
type denial struct {
	at      int64         // the time before the store was asked
	ask     int64         // from this time on, one caller asks the store again
	until   int64         // until this time, the other callers are denied
	results []core.Result // of the rule's limits at the time at
}

// locator is a resilient.Locator.
type locator interface {
	ServerOf(rule int, key []byte) string
}

// newCounters returns counters that are a locator if inner is one.
func newCounters(s *Store, inner core.Counters) core.Counters {
	c := &counters{Store: s, inner: inner, denied: map[key]*denial{}}
	c.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	if l, ok := inner.(locator); ok {
		return located{c, l}
	}
	return c
}

type located struct {
	*counters
	locator
}

// Reopen implements [core.Counters]. It forgets all denials, because the limits may have changed.
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	inner, err := c.inner.Reopen(rules)
	if err != nil {
		return nil, err
	}
	return newCounters(c.Store, inner), nil
}

// Do implements [core.Counters].
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	if b.Op&(core.OpTake|core.OpPeek) == 0 { // it may end denials, even if it fails
		defer c.forget(b)
		return c.inner.Do(ctx, b)
	}
	now := c.now()
	known, generation := c.cached(b.Items, now)
	if b.Cached = known; known {
		b.Allowed = false
		return nil
	}
	if err := c.inner.Do(ctx, b); err != nil {
		return err
	}
	switch {
	case b.Allowed: // a denial has ended, or its wait has changed
		c.forget(b)
	case !b.Degraded && (len(b.Items) == 1 || c.store.Guarantees().OneStep):
		// now was read before the store decided: a wait that begins at now ends no later than the
		// store's wait.
		c.remember(b.Items, now, generation)
	}
	return nil
}

func (c *counters) key(it *core.Item) key {
	return key{it.Rule, [2]uint64{maphash.Bytes(c.seeds[0], it.Key), maphash.Bytes(c.seeds[1], it.Key)}}
}

func (c *counters) generation(k key) *uint64 { return &c.generations[k.hash[0]%1024] }

// cacheable reports whether a denial of the item may be remembered.
func cacheable(it *core.Item) bool { return it.Cost == 1 && it.Quotas == nil }

// cached fills in the items if one of them is known to be denied. Otherwise it returns the
// generation of the items for remember.
func (c *counters) cached(items []core.Item, now int64) (known bool, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range items {
		it := &items[i]
		k := c.key(it)
		generation += *c.generation(k)
		it.At = now
		if it.Unknown = !cacheable(it) || !c.cachedKey(k, it.Results, now); it.Unknown {
			clear(it.Results)
		}
		known = known || !it.Unknown
	}
	for i := range items {
		items[i].Unknown = known && items[i].Unknown
	}
	return known, generation
}

// cachedKey fills in the results of a key that is known to be denied. If it was denied a while ago,
// cachedKey returns false to one caller, who asks the store again.
func (c *counters) cachedKey(k key, results []core.Result, now int64) bool {
	d := c.denied[k]
	switch {
	case d == nil:
		return false
	case now < d.at || now >= d.ask: // the clock was set back, or it is time to ask
		d.ask = d.until
		return false
	}
	passed := time.Duration(now-d.at) * time.Microsecond
	for i := range results {
		results[i] = later(d.results[i], passed)
	}
	return true
}

// later returns a result as it is after a time in which nothing was charged. Remaining is left as
// it was: it may have grown.
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

// remember notes which of the items the store has denied, unless their generation has changed.
func (c *counters) remember(items []core.Item, now int64, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range items {
		generation -= *c.generation(c.key(&items[i]))
	}
	for i := range items {
		it := &items[i]
		wait := time.Duration(0) // 0: the item is allowed
		for _, r := range it.Results {
			wait = max(wait, r.RetryAfter)
		}
		if generation != 0 || wait == 0 || it.Unknown || !cacheable(it) {
			continue
		}
		if len(c.denied) >= maxKeys {
			clear(c.denied) // most are over; requests for the others ask the store once more
		}
		d := &denial{at: now, until: now + min(wait, c.longest).Microseconds(), results: slices.Clone(it.Results)}
		if d.ask = d.until; wait > c.longest {
			d.ask -= (c.longest / 10).Microseconds()
		}
		c.denied[c.key(it)] = d
	}
}

// forget forgets the denials of the batch's keys, or of all keys, and keeps takes that are under
// way from adding theirs.
func (c *counters) forget(b *core.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Items {
		k := c.key(&b.Items[i])
		*c.generation(k)++
		delete(c.denied, k)
	}
	if b.Op == core.OpResetAll {
		for i := range c.generations {
			c.generations[i]++
		}
		clear(c.denied)
	}
}
