package synced

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// Store is a [core.Store] that counts in the process and exchanges differences with a backend. It
// is made by [New] and ended by Close. Its methods, and those of the Counters that Open returns,
// may be called concurrently.
type Store struct {
	backend  Backend
	config   Config
	node     string
	table    *table
	exchange exchange
	fetched  fetched
	failing  atomic.Bool // the last exchange failed
	stats    struct{ exchanges, failed, lost atomic.Uint64 }

	closed atomic.Bool
	ctx    context.Context // ends when Close is called
	cancel context.CancelFunc

	opened sync.Map  // names of limiters
	rates  *counters // of Increment and Rate: a rule for each of Config.Windows
}

var errClosed = fmt.Errorf("synced: %w", core.ErrClosed)

// namespaces has the backends and namespaces that the stores of this process use.
var namespaces sync.Map

// New returns a store that exchanges with the backend, and fetches the counters of Config.Windows.
// The error wraps [core.ErrConfig] and names each wrong field. Until Close, no other store of this
// process can use the namespace with the same Backend value.
func New(backend Backend, c Config) (*Store, error) {
	if err := c.check(backend); err != nil {
		return nil, err
	}
	c = c.filled()
	if backend != nil {
		if _, taken := namespaces.LoadOrStore([2]any{backend, c.Namespace}, true); taken {
			return nil, fmt.Errorf("%w: Namespace: %q: is in use already", core.ErrConfig, c.Namespace)
		}
	}
	s := &Store{
		backend:  backend,
		config:   c,
		node:     rand.Text(),
		table:    newTable(c.MaxKeys),
		exchange: exchange{turn: make(chan struct{}, 1)},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var rules []core.StoreRule
	for _, w := range c.Windows {
		rules = append(rules, core.StoreRule{Name: "-", Limits: []core.Limit{{Quota: core.MaxQuota, Window: w, Aligned: true}}})
	}
	rates, _ := (&counters{Store: s, limiter: "-increment"}).Reopen(rules) // check has checked the windows
	s.rates = rates.(*counters)
	if c.Interval > 0 {
		go s.run(mathrand.N(c.Interval))
	}
	return s, nil
}

// now returns the time in microseconds since the Unix epoch.
func (s *Store) now() int64 {
	if s.config.Clock != nil {
		return s.config.Clock().UnixMicro()
	}
	return time.Now().UnixMicro()
}

// Stats are the counts of a Store since it was made.
type Stats struct {
	Keys      int    // counters in the process now
	Exchanges uint64 // batches that the backend has answered, and fetches
	Failed    uint64 // batches and fetches that failed
	Lost      uint64 // hits that were never pushed: see Config.MaxKeys and Close
}

// Stats returns the counts since the store was made.
func (s *Store) Stats() Stats {
	return Stats{s.table.keys(), s.stats.exchanges.Load(), s.stats.failed.Load(), s.stats.lost.Load()}
}

// ops are the operations that the store knows.
const ops = core.OpTake | core.OpPeek | core.OpCharge | core.OpRefund | core.OpReset

// Guarantees implements [core.Store]. With Interval 0 the store is exact, and a take is one push or
// two, which the end of its context does not end. With another Interval the store is not exact, and
// each process counts alone while the backend does not answer.
func (s *Store) Guarantees() core.Guarantees {
	if s.config.Interval == 0 {
		return core.Guarantees{Ops: ops, Exact: true, Shared: true, OnFailure: core.FailClosed}
	}
	return core.Guarantees{Ops: ops, OneStep: true, Shared: s.config.Interval > 0, KeepsDeadline: true, FailsFast: true, OnFailure: core.FailLocal}
}

// Open implements [core.Store]. A limit that is not an aligned fixed_window or sliding_window is an
// error that wraps [core.ErrConfig]: windows that begin when a process first sees a key cannot be
// added up.
//
// Before it returns, Open fetches what other processes have counted: as many counters as it gets
// within Config.Timeout.
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if _, taken := s.opened.LoadOrStore(limiter, true); taken {
		return nil, fmt.Errorf("%w: Name: %q: this store already counts for a limiter of that name", core.ErrConfig, limiter)
	}
	c, err := (&counters{Store: s, limiter: limiter}).Reopen(rules)
	if err != nil {
		s.opened.Delete(limiter)
	}
	return c, err
}

// counters are the Counters of a Store.
type counters struct {
	*Store
	limiter string
	rules   []rule
}

type rule struct {
	core.StoreRule
	limits []limit
}

// limit is a limit as the store counts for it.
type limit struct {
	number  uint64 // of its counters in the table
	suffix  string // of its counters' names in the backend
	windows meter.Windows
}

// Reopen implements [core.Counters]. It fetches the counters of windows that are new, as Open does.
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if c.closed.Load() {
		return nil, errClosed
	}
	next := &counters{Store: c.Store, limiter: c.limiter}
	for _, r := range rules {
		all := rule{StoreRule: r}
		for _, l := range r.Limits {
			windows, ok := meter.NewWindows(meter.FromCore(l))
			if !ok {
				return nil, fmt.Errorf("%w: rule %q, limit %q: %v: stores/synced counts in windows that begin at multiples of their length: set Aligned, and leave Zone out", core.ErrConfig, r.Name, l.Name, l)
			}
			suffix := ":s"
			if l.Algorithm == core.FixedWindow {
				suffix = ":f"
			}
			id := fmt.Sprintf("%s %s %v%s", c.limiter, r.Name, l.Window, suffix)
			all.limits = append(all.limits, limit{c.table.number(id), suffix, windows})
		}
		next.rules = append(next.rules, all)
	}
	c.fetch(next.rules)
	return next, nil
}

// Do implements [core.Counters]. Unless Interval is 0, all operations but OpReset wait only for
// other callers, and other processes learn of the hits with the next exchange. OpReset is pushed at
// once, or after an exchange that is under way. Hits that another process pushes later stay.
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	switch {
	case b.Op&ops == 0:
		return fmt.Errorf("synced: %v: %w", b.Op, core.ErrUnsupported)
	case b.Op == core.OpReset && c.config.Interval > 0: // a batch on its way would bring its hits back
		return c.inTurn(ctx, func(ctx context.Context) error { return c.reset(ctx, b) })
	case b.Op == core.OpReset:
		return c.reset(ctx, b)
	case c.config.Interval == 0:
		return c.through(ctx, b)
	default:
		return c.local(b)
	}
}
