package denycache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultMaxKeys is the most refused keys that are remembered where
// Config.MaxKeys does not say.
const DefaultMaxKeys = 65_536

// Config configures [New]. The zero value works.
type Config struct {
	// MaxKeys is the most refused keys that are remembered at a time, for each
	// limiter; 0 means DefaultMaxKeys. A key takes about 150 bytes and 40 for
	// each limit of its rule. Those above it are asked for again.
	MaxKeys int
	// Longest is the longest that a refusal is remembered, so that a Reset by
	// another process is noticed after that. 0: until the wait is over.
	Longest time.Duration
	// Clock tells the time; nil: the process's monotonic clock. It must run as
	// the store's does, but need not agree with it.
	Clock func() time.Time
}

// Store is a [core.Store] that remembers what another has refused. It is made
// by [New]. Its methods, and those of what Bind returns, may be called
// concurrently.
type Store struct {
	store   core.Store
	config  Config
	now     func() int64
	refused atomic.Uint64
}

var _ core.Store = (*Store)(nil)

// New returns a store that asks store and remembers its refusals. The error
// wraps [core.ErrConfig] and names the fields.
func New(store core.Store, c Config) (*Store, error) {
	var errs []error
	if err := core.CheckStore(store); err != nil {
		errs = append(errs, err)
	}
	if c.MaxKeys < 0 {
		errs = append(errs, fmt.Errorf("%w: MaxKeys: %d: must be 1 or more, or 0 for %d", core.ErrConfig, c.MaxKeys, DefaultMaxKeys))
	}
	if c.Longest < 0 {
		errs = append(errs, fmt.Errorf("%w: Longest: %v: must be above 0, or 0 for no bound", core.ErrConfig, c.Longest))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	return &Store{store: store, config: c, now: microClock(c.Clock)}, nil
}

// microClock returns a clock of microseconds since the Unix epoch.
func microClock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + time.Since(start).Microseconds() }
}

// Refused returns how many decisions have been made without asking the store.
func (s *Store) Refused() uint64 { return s.refused.Load() }

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.store.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	return newBound(s, b, rules), nil
}

// bound is the Bound of a Store.
type bound struct {
	*Store
	inner core.Bound
	rules []core.StoreRule
	table *table
}

func newBound(s *Store, inner core.Bound, rules []core.StoreRule) *bound {
	return &bound{Store: s, inner: inner, rules: rules, table: newTable(s.config.MaxKeys)}
}

// Rebind implements [core.Bound]. It forgets all refusals: the limits may be
// others.
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	return newBound(b.Store, inner, rules), nil
}

// Take implements [core.Bound].
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	if b.known(batch, now) {
		b.refused.Add(1)
		return nil
	}
	before := b.table.generation.Load()
	if err := b.inner.Take(ctx, batch); err != nil {
		return err
	}
	// now is from before the store decided: a wait that begins then is over no
	// later than the store's own. What a fallback has refused is not known of
	// the shared counters.
	if !batch.Allowed && !batch.Degraded {
		b.remember(batch, now, before)
	}
	return nil
}

// known fills in the batch where one of its items is known to be refused.
func (b *bound) known(batch *core.Batch, now int64) bool {
	found := false
	for i := range batch.Items {
		it := &batch.Items[i]
		if it.Cost > 0 && b.table.recall(b.table.key(it), it, now) {
			it.At = now
			if !found {
				found = true
				b.unknown(batch.Items[:i], now)
			}
		} else if found {
			b.unknown(batch.Items[i:i+1], now)
		}
	}
	if found {
		batch.Allowed = false
	}
	return found
}

// unknown fills in the results of items of which nothing is known.
func (b *bound) unknown(items []core.Item, now int64) {
	for i := range items {
		it := &items[i]
		it.At = now
		for j, l := range b.rules[it.Rule].Limits {
			capacity := l.Quota
			if l.Algorithm == core.TokenBucket && l.Burst > 0 {
				capacity = l.Burst
			}
			r := core.Result{Allowed: true, Remaining: capacity}
			if it.Cost > capacity || l.Quota == 0 && it.Cost > 0 {
				r.Allowed, r.RetryAfter = false, core.Never
			}
			if l.Quota == 0 {
				r.Remaining = 0
			}
			it.Results[j] = r
		}
	}
}

func (b *bound) remember(batch *core.Batch, now int64, generation uint64) {
	for i := range batch.Items {
		it := &batch.Items[i]
		wait := time.Duration(0)
		for j := range it.Results {
			wait = max(wait, it.Results[j].RetryAfter)
		}
		if wait == 0 || wait == core.Never {
			continue
		}
		if b.config.Longest > 0 {
			wait = min(wait, b.config.Longest)
		}
		b.table.remember(b.table.key(it), it, now, now+wait.Microseconds(), generation)
	}
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	err := b.inner.Refund(ctx, batch)
	b.forget(batch)
	return err
}

// Reset implements [core.Bound].
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	err := b.inner.Reset(ctx, batch)
	b.forget(batch)
	return err
}

// forget forgets what is known of the items, and what takes that are under way
// may be about to say of them.
func (b *bound) forget(batch *core.Batch) {
	b.table.generation.Add(1)
	for i := range batch.Items {
		b.table.forget(b.table.key(&batch.Items[i]))
	}
}
