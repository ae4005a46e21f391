package resilient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// ErrDown is wrapped by the error of an operation for which the store was not
// asked, because its circuit is open. It wraps [core.ErrNotCharged].
var ErrDown = notcharged.Error(errors.New("resilient: the store does not answer"))

// Store is a [core.Store] around another. It is made by [New]. Its methods,
// and those of what Open returns, may be called concurrently.
type Store struct {
	inner    core.Store
	config   Config
	circuits sync.Map // of each server's name: its *circuit; "" is the store as a whole
	local    *core.Memory
	now      func() int64 // the clock of local, in microseconds
	ahead    atomic.Int64 // how far that clock is ahead of the store's, in microseconds
}

// New returns a store that asks store, and decides by Config.OnFailure if store
// does not answer. The error wraps [core.ErrConfig] and names the fields.
func New(store core.Store, c Config) (*Store, error) {
	if err := c.check(store); err != nil {
		return nil, err
	}
	local, err := core.NewMemory(core.MemoryConfig{MaxKeys: c.MaxKeys, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	return &Store{inner: store, config: c.filled(store.Guarantees().KeepsDeadline), local: local, now: meter.Clock(c.Clock)}, nil
}

// Guarantees returns those of the other store, except that operations end within a deadline, and do
// not wait for a store that does not answer. OnFailure is that of the Config, unless the other store
// fails open or locally by itself.
func (s *Store) Guarantees() core.Guarantees {
	g := s.inner.Guarantees()
	g.KeepsDeadline, g.FailsFast = true, true
	switch {
	case s.config.OnFailure == FailOpen:
		g.OnFailure = core.FailOpen
	case s.config.OnFailure == Local && g.OnFailure == core.FailClosed:
		g.OnFailure = core.FailLocal
	}
	return g
}

// Up reports whether the circuits of all servers are closed.
func (s *Store) Up() bool {
	up := true
	s.circuits.Range(func(_, k any) bool {
		up = k.(*circuit).up()
		return up
	})
	return up
}

// Close drops the counters of this process. It does not close the other store. It
// returns nil. Later operations that need the counters of this process fail.
func (s *Store) Close() error { return s.local.Close() }

// counters are the Counters of a Store for one limiter.
type counters struct {
	*Store
	limiter string
	whole   *circuit // of the store as a whole
	inner   core.Counters
	locator Locator       // inner, if it is one
	local   core.Counters // with the shares of this process in place of the quotas
}

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	inner, err := s.inner.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	local, err := s.local.Open(limiter, s.shares(rules))
	if err != nil {
		return nil, err
	}
	return newCounters(s, limiter, inner, local), nil
}

// Reopen implements [core.Counters].
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	inner, err := c.inner.Reopen(rules)
	if err != nil {
		return nil, err
	}
	local, err := c.local.Reopen(c.shares(rules))
	if err != nil {
		return nil, err
	}
	return newCounters(c.Store, c.limiter, inner, local), nil
}

func newCounters(s *Store, limiter string, inner, local core.Counters) *counters {
	locator, _ := inner.(Locator)
	return &counters{s, limiter, s.circuit(""), inner, locator, local}
}

// shares returns the rules with this process's share of their quotas.
func (s *Store) shares(rules []core.StoreRule) []core.StoreRule {
	shared := slices.Clone(rules)
	for i := range shared {
		limits := slices.Clone(shared[i].Limits)
		for j := range limits {
			limits[j].Quota, limits[j].Burst = s.share(limits[j].Quota), s.share(limits[j].Burst)
		}
		shared[i].Limits = limits
	}
	return shared
}

// share returns this process's share of a quota.
func (s *Store) share(quota int64) int64 {
	if quota == 0 || quota == core.Unlimited {
		return quota
	}
	return max(quota/int64(s.config.Instances), 1)
}

// Do implements [core.Counters]. Only OpTake, OpPeek and OpResetAll end with ctx.
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	if b.Op&(core.OpTake|core.OpPeek|core.OpResetAll) == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	if b.Op == core.OpRefund && b.Degraded {
		return c.decideHere(ctx, b, nil) // it was counted here, or nowhere
	}
	err := c.ask(ctx, b)
	switch {
	case err == nil:
		c.repeatHere(ctx, b)
		return nil
	case errors.Is(ctx.Err(), context.Canceled), isAny(err, core.ErrConfig, core.ErrClosed, core.ErrUnsupported):
		return err // nobody waits for a decision, or the request is at fault
	}
	return c.decideHere(ctx, b, err)
}

// hurry is the least time of a caller whose deadline counts as a failure of the store.
const hurry = 20 * time.Millisecond

// ask does the operation in the store if the circuits allow it, and ends their tickets.
func (c *counters) ask(ctx context.Context, b *core.Batch) error {
	b.Cached = false
	var room [2]ticket
	tickets, ok := c.tickets(room[:0], b)
	if !ok {
		return ErrDown
	}
	deadline, hurried := ctx.Deadline()
	hurried = hurried && time.Until(deadline) < hurry && !tickets[0].try
	err := c.call(ctx, b)
	o := failed
	switch {
	case err == nil && !b.Cached:
		o = answered
	case err == nil, // answered by a cache in front of the store
		isAny(err, notTheStores...),
		errors.Is(ctx.Err(), context.Canceled),
		hurried && time.Until(deadline) <= 0:
		o = nothing
	}
	c.settle(tickets, o, err)
	return err
}

// notTheStores are the errors whose fault is in the request or in one key, not in a server.
var notTheStores = []error{core.ErrConfig, core.ErrClosed, core.ErrUnsupported, core.ErrContended, core.ErrDamaged}

// call does the operation in the store within the deadline. A panic is a failure.
func (c *counters) call(ctx context.Context, b *core.Batch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the store panicked: %v", v)
		}
		if err != nil {
			err = fmt.Errorf("resilient: %w", err)
		}
	}()
	if c.config.Timeout > 0 && b.Op != core.OpResetAll { // it takes as long as there are keys
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.config.Timeout)
		defer cancel()
	}
	return c.inner.Do(ctx, b)
}

// isAny reports whether err wraps one of the targets.
func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}

// decideHere does the operation without the store, which has failed with cause. A nil cause: the
// store need not be asked.
func (c *counters) decideHere(ctx context.Context, b *core.Batch, cause error) error {
	mode, decides := c.config.OnFailure, b.Op&(core.OpTake|core.OpPeek|core.OpCharge) != 0
	if mode == FailClosed || mode == FailOpen && !decides || b.Op == core.OpRefund && !b.Degraded {
		return cause
	}
	o := c.copy(b)
	defer o.free()
	if mode == FailOpen { // its counters are empty, and a cost of 0 is always allowed
		for i := range o.items {
			o.items[i].Cost = 0
		}
	}
	if err := c.local.Do(ctx, &o.Batch); err != nil {
		return errors.Join(err, cause)
	}
	o.copyTo(b)
	if decides || cause == nil {
		return nil
	}
	return fmt.Errorf("resilient: %v: %w: repeat it when the store answers: %w", b.Op, core.ErrDegraded, notcharged.Unmark(cause))
}

// repeatHere does in this process what the store has done, so that the counters here have all hits
// that this process has allowed.
func (c *counters) repeatHere(ctx context.Context, b *core.Batch) {
	if c.config.OnFailure != Local || b.Op == core.OpPeek || b.Op == core.OpTake && !b.Allowed {
		return
	}
	o := c.copy(b)
	defer o.free()
	switch b.Op {
	case core.OpTake:
		o.Op = core.OpCharge // above the share, too
	case core.OpRefund:
		c.translate(o)
	}
	if err := c.local.Do(ctx, &o.Batch); err == nil && o.Op == core.OpCharge && len(b.Items) > 0 {
		c.ahead.Store(o.items[0].At - b.Items[0].At)
	} // an error means that this Store is closed
}

// clockSlack is added to the estimate of when this process charged a hit of the
// store's. An estimate that is too early might lie before the window that the
// hit has opened. One that is too late only leaves the hit counted here.
const clockSlack = 200 * time.Millisecond

// translate replaces the times in the store's results of a charge by those that the counters
// of this process have returned for it, as well as is known. A SlidingLog, which
// has the time of each hit, keeps the hit.
func (c *counters) translate(o *localBatch) {
	n := int64(c.config.Instances)
	for i := range o.items {
		it := &o.items[i]
		it.At = min(c.now(), it.At+c.ahead.Load()+clockSlack.Microseconds())
		for j := range it.Results { // a share is paid off more slowly
			reset := min(int64(it.Results[j].ResetAfter), math.MaxInt64/n)
			it.Results[j].ResetAfter = time.Duration(reset * n)
		}
	}
}

// localBatch is a copy of a batch for the counters of this process.
type localBatch struct {
	core.Batch
	items   []core.Item
	results []core.Result
	quotas  []int64
}

var localBatches = sync.Pool{New: func() any { return new(localBatch) }}

// copy copies a batch, but not its keys, which do not change. The quotas of a request
// become this process's share of them.
func (c *counters) copy(b *core.Batch) *localBatch {
	o := localBatches.Get().(*localBatch)
	o.items, o.results, o.quotas = append(o.items[:0], b.Items...), o.results[:0], o.quotas[:0]
	for i := range o.items {
		it := &o.items[i]
		o.results = append(o.results, it.Results...)
		it.Results = o.results[len(o.results)-len(it.Results):]
		if it.Quotas == nil {
			continue
		}
		first := len(o.quotas)
		for _, q := range it.Quotas {
			o.quotas = append(o.quotas, c.share(q))
		}
		it.Quotas = o.quotas[first:]
	}
	o.Batch = *b
	o.Items = o.items
	return o
}

// copyTo copies the results to the batch.
func (o *localBatch) copyTo(b *core.Batch) {
	b.Allowed, b.Degraded = o.Allowed, true
	for i := range b.Items {
		b.Items[i].At, b.Items[i].Unknown = o.items[i].At, false
		copy(b.Items[i].Results, o.items[i].Results)
	}
}

// free returns the copy to its pool.
func (o *localBatch) free() {
	clear(o.items)
	localBatches.Put(o)
}
