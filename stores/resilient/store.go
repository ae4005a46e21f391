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
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

// ErrDown is wrapped by the error of an operation for which the store was not
// asked, because its circuit is open.
var ErrDown = errors.New("resilient: the store does not answer")

// Store is a [core.Store] around another. It is made by [New]. Its methods,
// and those of what Bind returns, may be called concurrently.
type Store struct {
	store    core.Store
	config   Config
	circuits *circuits
	local    *core.Memory   // counts for ModeInProcess
	payer    *payer         // charges to the store the hits that these counters have admitted
	now      func() int64   // the clock of both, in microseconds
	offset   atomic.Int64   // by how much that clock is ahead of the store's
	runner   *intime.Runner // nil: the store keeps a deadline by itself
	shorter  time.Duration  // than the store's own deadline; 0: the store's own holds
}

var _ core.Store = (*Store)(nil)

// New returns a store that asks store, and decides by Config.Meanwhile if store
// does not answer. The error wraps [core.ErrConfig] and names the fields.
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
	s := &Store{store: store, config: c, circuits: newCircuits(&c), local: local, payer: newPayer(&c), now: meter.Clock(c.Clock), shorter: shorter}
	if t, _ := core.TraitsOf(store); !t.KeepsDeadline {
		s.runner = intime.New(c.Timeout)
	}
	return s, nil
}

// Meanwhile returns how requests are decided if the other store does not
// answer.
func (s *Store) Meanwhile() Mode { return s.config.Meanwhile }

// Up reports whether the circuit of the store is closed. If it is open,
// requests are decided without the store, except for a try about every
// Config.Retry. If the store reports its servers (see [Locator]), Up is false
// while one of them is down.
func (s *Store) Up() bool { return s.circuits.up() }

// Close drops the counters of this process, and the hits of an outage that have
// not been charged to the store yet. It waits for a charge that is under way,
// which ends within the store's deadline. It does not close the other store.
// Later operations that need the counters of this process fail.
func (s *Store) Close() error {
	s.payer.close()
	return s.local.Close()
}

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	inner, err := s.store.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	if err := limits.CheckLeaser(inner, rules); err != nil {
		return nil, err
	}
	shares := share(rules, s.config.Instances)
	local, err := s.local.Bind(limiter, shares)
	if err != nil {
		return nil, err
	}
	debts := newLedger(s.config.MaxKeys)
	b := newBound(s, rules, shares, inner, local, debts, newSlots())
	s.payer.add(debts) // last, because the payer may run for another limiter and asks each ledger for its bound
	return b, nil
}

// share returns the rules with quotas divided by the number of instances,
// rounded up. Together the instances admit less than one hit each too many, and
// no quota becomes 0.
func share(rules []core.StoreRule, instances int) []core.StoreRule {
	n := int64(instances)
	shared := make([]core.StoreRule, len(rules))
	for i, r := range rules {
		shared[i] = core.StoreRule{Name: r.Name, Limits: append([]core.Limit(nil), r.Limits...)}
		for j := range r.Limits {
			l := &shared[i].Limits[j]
			l.Quota, l.Burst = part(l.Quota, n), part(l.Burst, n)
		}
	}
	return shared
}

// bound is the Bound of a Store.
type bound struct {
	*Store
	rules  []core.StoreRule
	shares []core.StoreRule // the rules of local
	gauges struct{ rules, shares []gauge }
	inner  core.Bound
	where  Locator // inner, if it is one
	local  core.Bound
	owed   *owed
	payers payers

	slots     *slots
	leases    []int // of each rule, the index of its limit of leases, -1 if it has none
	hasLeases bool
}

func newBound(s *Store, rules, shares []core.StoreRule, inner, local core.Bound, debts *ledger, held *slots) *bound {
	b := &bound{Store: s, rules: rules, shares: shares, inner: inner, local: local, owed: newOwed(debts, s.now, rules, shares, local), slots: held}
	for _, r := range rules {
		i := limits.Lease(r.Limits)
		b.leases, b.hasLeases = append(b.leases, i), b.hasLeases || i >= 0
	}
	b.where, _ = inner.(Locator)
	b.gauges.rules, b.gauges.shares = newGauges(rules), newGauges(shares)
	debts.serve(b)
	return b
}

// Rebind implements [core.Bound].
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	inner, err := b.inner.Rebind(rules)
	if err != nil {
		return nil, err
	}
	if err := limits.CheckLeaser(inner, rules); err != nil {
		return nil, err
	}
	shares := share(rules, b.config.Instances)
	local, err := b.local.Rebind(shares)
	if err != nil {
		return nil, err
	}
	return newBound(b.Store, rules, shares, inner, local, b.owed.ledger, b.slots), nil
}

// at returns the time of a decision by the store's clock.
func at(batch *core.Batch) int64 {
	if len(batch.Items) == 0 {
		return 0
	}
	return batch.Items[0].At
}

// ask runs op on the store if the circuits allow it, and tells them how it
// ended.
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

// done tells the circuits how an operation that began at began has ended.
func (b *bound) done(ctx context.Context, t *tickets, err error, began time.Time) {
	t.done(err, trouble(err) && (ctx.Err() == nil || b.tooSlow(ctx, began)))
}

// patience is how long a store may take if the caller's deadline is sooner.
const patience = 20 * time.Millisecond

// tooSlow reports whether the end of the caller's deadline is a failure of the
// store: the store has had its time, or it is known to be down and this was a
// try. A cancelled caller is no failure of the store.
func (b *bound) tooSlow(ctx context.Context, began time.Time) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && (time.Since(began) >= patience || !b.circuits.up())
}

// call runs op on inner within the deadline. inner is that of b, or is bound to
// the same limiter's counters.
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

// errRecalled tells the circuits that a cache remembered the denial: it tells
// nothing about the store.
var errRecalled = errors.New("a denial was remembered: the store was not asked")

// direct asks a store that keeps a deadline by itself. A store returns when the
// context ends, so the context keeps a shorter Timeout.
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

// noTrouble has the errors that are no failure of the store: the fault is in
// the request or in one key.
var noTrouble = []error{core.ErrConfig, core.ErrContended, core.ErrClosed, core.ErrDamaged}

// trouble reports whether an error shows the store to be out of order.
func trouble(err error) bool {
	isOf := func(none error) bool { return errors.Is(err, none) }
	return err != nil && !slices.ContainsFunc(noTrouble, isOf)
}

// notCharged reports whether an error proves that the store has charged nothing:
// it says so, or there was no connection.
func notCharged(err error) bool {
	var op *net.OpError
	return errors.Is(err, core.ErrNotCharged) || errors.As(err, &op) && op.Op == "dial"
}

// slow reports whether an error shows no more than that the store did not answer
// in time. A store that comes back empty has been gone.
func slow(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, intime.ErrTimeout) || errors.Is(err, intime.ErrBusy) || errors.As(err, &network) && network.Timeout()
}

// answerable reports whether a request is decided without the store after its
// decision has failed with err. A caller whose deadline is over still gets a
// decision; a caller that has cancelled does not want one.
func answerable(ctx context.Context, err error) bool {
	return !errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, core.ErrConfig) && !errors.Is(err, core.ErrClosed)
}
