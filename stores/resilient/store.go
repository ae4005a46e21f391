package resilient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

// ErrDown is wrapped by the error of an operation that the store was not asked
// for, because it does not answer.
var ErrDown = errors.New("resilient: the store does not answer")

// Store is a [core.Store] around another. It is made by [New]. Its methods,
// and those of what Bind returns, may be called concurrently.
type Store struct {
	store    core.Store
	config   Config
	circuits *circuits
	local    *core.Memory   // counts for InProcess
	marks    *core.Memory   // of the keys that it has admitted: see owed
	now      func() int64   // the clock of both, in microseconds
	offset   atomic.Int64   // by how much that is ahead of the store's
	runner   *intime.Runner // nil: the store keeps a deadline by itself
	shorter  time.Duration  // than the store's own deadline; 0: that one holds
}

var _ core.Store = (*Store)(nil)

// New returns a store that asks store, and decides by itself while that does
// not answer. The error wraps [core.ErrConfig] and names the fields.
func New(store core.Store, c Config) (*Store, error) {
	if err := c.check(store); err != nil {
		return nil, err
	}
	shorter := c.Timeout
	c = c.filled()
	local, err := core.NewMemory(core.MemoryConfig{MaxKeys: c.MaxKeys, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	marks, err := core.NewMemory(core.MemoryConfig{MaxKeys: c.MaxKeys, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	now := microClock(c.Clock)
	s := &Store{store: store, config: c, circuits: newCircuits(&c), local: local, marks: marks, now: now, shorter: shorter}
	if !core.TraitsOf(store).KeepsDeadline {
		s.runner = intime.New(c.Timeout)
	}
	return s, nil
}

// microClock returns a clock of microseconds since the Unix epoch, as that of a
// core.Memory is.
func microClock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + time.Since(start).Microseconds() }
}

// Meanwhile returns what the store does while the other one does not answer.
func (s *Store) Meanwhile() Meanwhile { return s.config.Meanwhile }

// Up says whether the store is being asked: false while requests are decided
// meanwhile, and only now and then one tries the store. If the store tells its
// servers apart (see [Locator]), Up is false while one of them is down.
func (s *Store) Up() bool { return s.circuits.up() }

// Close gives up the counters of this process. The store itself is its
// owner's to close. Operations after that fail where they need these counters.
func (s *Store) Close() error { return errors.Join(s.local.Close(), s.marks.Close()) }

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	inner, err := s.store.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	shares := share(rules, s.config.Instances)
	local, err := s.local.Bind(limiter, shares)
	if err != nil {
		return nil, err
	}
	owed, err := s.bindOwed(limiter, rules)
	if err != nil {
		return nil, err
	}
	return newBound(s, rules, shares, inner, local, owed), nil
}

// share returns the rules with quotas divided by the number of instances,
// rounded up: what some instances admit too much is less than one hit each, and
// no limit becomes none.
func share(rules []core.StoreRule, instances int) []core.StoreRule {
	n := int64(instances)
	part := func(quota int64) int64 { return (quota + n - 1) / n }
	shared := make([]core.StoreRule, len(rules))
	for i, r := range rules {
		shared[i] = core.StoreRule{Name: r.Name, Limits: append([]core.Limit(nil), r.Limits...)}
		for j := range r.Limits {
			l := &shared[i].Limits[j]
			l.Quota, l.Burst = part(l.Quota), part(l.Burst)
		}
	}
	return shared
}

// bound is the Bound of a Store.
type bound struct {
	*Store
	rules  []core.StoreRule
	shares []core.StoreRule // the rules of local
	inner  core.Bound
	where  Locator // inner, if it is one
	local  core.Bound
	owed   *owed
	payers payers
}

func newBound(s *Store, rules, shares []core.StoreRule, inner, local core.Bound, owed *owed) *bound {
	b := &bound{Store: s, rules: rules, shares: shares, inner: inner, local: local, owed: owed}
	b.where, _ = inner.(Locator)
	return b
}

// Rebind implements [core.Bound].
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	shares := share(rules, b.config.Instances)
	local, err := b.local.Rebind(shares)
	if err != nil {
		return nil, err
	}
	owed, err := b.owed.rebind(rules)
	if err != nil {
		return nil, err
	}
	return newBound(b.Store, rules, shares, inner, local, owed), nil
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	if batch.Degraded {
		if b.config.Meanwhile == InProcess {
			return b.local.Refund(ctx, batch)
		}
		return nil // was never charged
	}
	err := b.ask(ctx, batch, core.Bound.Refund)
	if b.config.Meanwhile == InProcess {
		own := newMirror(batch)
		defer own.free()
		now, offset := b.now(), b.offset.Load()
		for i := range own.items {
			it := &own.items[i]
			it.At = min(now, it.At+offset+clockSlack.Microseconds())
		}
		err = errors.Join(err, b.local.Refund(ctx, &own.batch))
	}
	return err
}

// clockSlack is added to the estimate of when a hit of the store's was charged
// in this process. Too early an estimate might lie before the window that the
// hit has opened; too late a one only leaves a hit counted here.
const clockSlack = 200 * time.Millisecond

// at is the time of a decision by the store's clock.
func at(batch *core.Batch) int64 {
	if len(batch.Items) == 0 {
		return 0
	}
	return batch.Items[0].At
}

// Reset implements [core.Bound].
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	b.owed.forget(batch)
	return errors.Join(b.local.Reset(ctx, batch), b.ask(ctx, batch, core.Bound.Reset))
}

// ask has the store do op, if it is to be asked at all, and learns from how
// that ends.
func (b *bound) ask(ctx context.Context, batch *core.Batch, op intime.Op) error {
	t, err := b.circuits.allow(b.where, batch)
	if err != nil {
		return err
	}
	return b.do(ctx, batch, op, &t)
}

func (b *bound) do(ctx context.Context, batch *core.Batch, op intime.Op, t *tickets) error {
	batch.Recalled = false
	began := time.Now()
	err := b.call(ctx, b.inner, batch, op)
	if err == nil && batch.Recalled {
		t.done(errRecalled, false)
		return nil
	}
	b.done(ctx, t, err, began)
	return err
}

// done tells the circuits how an operation that has begun then has ended.
func (b *bound) done(ctx context.Context, t *tickets, err error, began time.Time) {
	t.done(err, trouble(err) && (ctx.Err() == nil || b.tooSlow(ctx, began)))
}

// patience is how long a store may take although the caller's deadline is nearer.
const patience = 20 * time.Millisecond

// tooSlow reports whether the end of the caller's deadline says something against
// the store: it has had its time, or it is known to be down and this was a try. A
// caller that has gone away says nothing.
func (b *bound) tooSlow(ctx context.Context, began time.Time) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && (time.Since(began) >= patience || !b.circuits.up())
}

// call has inner do op within the deadline. inner is that of b, or bound to the
// same limiter's counters.
func (b *bound) call(ctx context.Context, inner core.Bound, batch *core.Batch, op intime.Op) error {
	var err error
	if b.runner != nil {
		err = b.runner.Do(ctx, inner, batch, op)
	} else {
		err = b.direct(ctx, inner, batch, op)
	}
	if err != nil {
		err = fmt.Errorf("resilient: %w", err)
	}
	return err
}

// errRecalled tells the circuits that a denial which a cache remembered says
// nothing about the store.
var errRecalled = errors.New("a denial was remembered: the store was not asked")

// direct asks a store that keeps a deadline by itself. A store lets its caller
// go when the context ends: that is how a shorter Timeout is kept.
func (b *bound) direct(ctx context.Context, inner core.Bound, batch *core.Batch, op intime.Op) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the store panicked: %v", v)
		}
	}()
	if b.shorter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.shorter)
		defer cancel()
	}
	return op(inner, ctx, batch)
}

// noTrouble are the errors which say nothing against the store: something is
// wrong with what it was asked, or with one key.
var noTrouble = []error{core.ErrConfig, core.ErrContended, core.ErrClosed, core.ErrDamaged}

// trouble says that an error shows the store to be out of order.
func trouble(err error) bool {
	isOf := func(none error) bool { return errors.Is(err, none) }
	return err != nil && !slices.ContainsFunc(noTrouble, isOf)
}

// neverSent reports whether an error proves that the store has not been asked:
// there was no connection.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// answerable reports whether a request whose decision has failed with err is to be
// decided meanwhile. A caller whose deadline is over still gets a decision; one that
// has gone away does not want any.
func answerable(ctx context.Context, err error) bool {
	return !errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, core.ErrConfig) && !errors.Is(err, core.ErrClosed)
}
