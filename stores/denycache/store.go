package denycache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// The defaults of a Config.
const (
	DefaultMaxKeys = 65_536
	DefaultLongest = time.Second
)

// Config configures [New]. The zero value works.
type Config struct {
	// MaxKeys is the highest number of denied keys that are remembered at a
	// time, for each limiter; 0 means DefaultMaxKeys. A key takes about 200
	// bytes and 40 for each limit of its rule, or 48 if requests bring quotas of
	// their own. The store is asked about keys that do not fit.
	MaxKeys int
	// Longest is the longest time for which a denial is remembered: 1 ms or
	// more; 0 means DefaultLongest. The store is asked about each denied key
	// once in that time, so that a Reset or Refund by another process takes
	// effect here after that time at the latest.
	Longest time.Duration
	// Clock returns the time; nil: the process's monotonic clock. It must run
	// as fast as the store's clock, but need not show the same time.
	Clock func() time.Time
}

// Store is a [core.Store] that remembers the denials of another. It is made by
// [New]. Its methods, and those of the Bounds that Bind returns, may be called
// concurrently.
type Store struct {
	store   core.Store
	says    interface{ Traits() core.Traits } // store, if it has traits
	config  Config
	now     func() int64
	refused atomic.Uint64
}

var _ core.Store = (*Store)(nil)

// New returns a store that asks store and remembers its denials. The error
// wraps [core.ErrConfig] and names the fields.
func New(store core.Store, c Config) (*Store, error) {
	var errs []error
	if _, err := core.TraitsOf(store); err != nil {
		errs = append(errs, err)
	}
	if c.MaxKeys < 0 {
		errs = append(errs, fmt.Errorf("%w: MaxKeys: %d: must be 1 or more, or 0 for %d", core.ErrConfig, c.MaxKeys, DefaultMaxKeys))
	}
	if c.Longest != 0 && c.Longest < time.Millisecond {
		errs = append(errs, fmt.Errorf("%w: Longest: %v: must be 1ms or more, or 0 for %v", core.ErrConfig, c.Longest, DefaultLongest))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Longest == 0 {
		c.Longest = DefaultLongest
	}
	s := &Store{store: store, config: c, now: meter.Clock(c.Clock)}
	s.says, _ = store.(interface{ Traits() core.Traits })
	return s, nil
}

// Refused returns how many requests were denied without asking the store.
func (s *Store) Refused() uint64 { return s.refused.Load() }

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.store.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	if err := limits.CheckLeaser(b, rules); err != nil {
		return nil, err
	}
	return newBound(s, b, rules), nil
}

// bound is the Bound of a Store.
type bound struct {
	*Store
	inner  core.Bound
	table  *table
	leases []int // see leases
}

// ServerOf returns the server of a key as the other store reports it, "" if it
// does not: see resilient.Locator.
func (b *bound) ServerOf(rule int, key []byte) string {
	if l, ok := b.inner.(interface{ ServerOf(int, []byte) string }); ok {
		return l.ServerOf(rule, key)
	}
	return ""
}

// Beside returns the Bound of the other store's Beside: see
// resilient.Divisible. That Bound remembers no denials. Beside returns nil
// without an error if the other store has no such method.
func (b *bound) Beside(rules []core.StoreRule) (core.Bound, error) {
	if d, ok := b.inner.(interface {
		Beside([]core.StoreRule) (core.Bound, error)
	}); ok {
		return d.Beside(rules)
	}
	return nil, nil
}

func newBound(s *Store, inner core.Bound, rules []core.StoreRule) *bound {
	return &bound{Store: s, inner: inner, table: newTable(s.config.MaxKeys), leases: leases(rules)}
}

// Rebind implements [core.Bound]. It forgets all denials, because the limits
// may have changed.
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
	known, again := b.recall(batch, now)
	batch.Recalled = known
	if known {
		b.refused.Add(1)
		return nil
	}
	before := b.table.generation(batch.Items)
	if err := b.inner.Take(ctx, batch); err != nil {
		return err
	}
	switch {
	case batch.Allowed:
		switch {
		case again: // another process has reset the key
			b.forget(batch)
		case !batch.Peek:
			b.charged(batch)
		}
	case b.lasts(batch):
		// now was read before the store decided: a wait that begins at now ends
		// no later than the store's wait.
		b.remember(batch, now, before)
	}
	return nil
}

// lasts reports whether a denial will be the same in a moment. It will not if
// it is a fallback's, or if the store takes the items one by one: the denial
// may then be due to hits that the store is about to refund.
func (b *bound) lasts(batch *core.Batch) bool {
	return !batch.Degraded && (len(batch.Items) == 1 || b.says != nil && b.says.Traits().OneStep)
}

// recall fills in the batch if one of its items is known to be denied. again
// means that the store must be asked whether an item is still denied.
func (b *bound) recall(batch *core.Batch, now int64) (known, again bool) {
	for i := range batch.Items {
		it := &batch.Items[i]
		what := unknown
		if it.Cost > 0 {
			what = b.table.recall(it, now)
		}
		known = known || what == denied
		again = again || what == stale
		it.Unknown = what != denied
	}
	for i := range batch.Items {
		it := &batch.Items[i]
		if it.At = now; !known {
			it.Unknown = false
		}
		if it.Unknown {
			clear(it.Results)
		}
	}
	if known {
		batch.Allowed = false
	}
	return known, again
}

func (b *bound) remember(batch *core.Batch, now int64, generation uint64) {
	longest := b.config.Longest
	for i := range batch.Items {
		it := &batch.Items[i]
		wait := time.Duration(0)
		for j := range it.Results {
			wait = max(wait, it.Results[j].RetryAfter)
		}
		if wait == 0 || it.Unknown || b.mayEnd(it) {
			continue
		}
		ask := wait
		if wait > longest {
			wait, ask = longest, longest-longest/10
		}
		b.table.remember(batch, it, now, now+ask.Microseconds(), now+wait.Microseconds(), generation)
	}
}

// charged forgets the remembered denials of the keys that were charged. Denials
// of higher costs now last longer, or, if the charge has begun a lockout,
// shorter. A charge with quotas of its own can make any denial of a token bucket
// shorter, even one that another caller is being told at this moment: the debt is
// now paid off at its quota.
func (b *bound) charged(batch *core.Batch) {
	for i := range batch.Items {
		it := &batch.Items[i]
		switch {
		case it.Cost == 0:
		case it.Quotas != nil:
			b.table.forget(it)
		default:
			b.table.forgetKnown(it)
		}
	}
}

// Charge implements [core.Bound].
func (b *bound) Charge(ctx context.Context, batch *core.Batch) error {
	err := b.inner.Charge(ctx, batch)
	b.forget(batch) // also after an error: the hits may have been charged
	return err
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

func (b *bound) forget(batch *core.Batch) {
	for i := range batch.Items {
		b.table.forget(&batch.Items[i])
	}
}

// Traits returns what the other store promises: the cache changes none of it.
func (s *Store) Traits() core.Traits {
	t, _ := core.TraitsOf(s.store) // New has checked the store
	return t
}
