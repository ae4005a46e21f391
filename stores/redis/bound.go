package redisstore

import (
	"context"
	"errors"
	"sync"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// bound is the Bound of a Store.
type bound struct {
	store   *Store
	limiter string
	rules   []boundRule
}

type boundRule struct {
	name   string
	limits any  // a string, as the script reads it, boxed once
	denies bool // deny a key whose value cannot be read
	weight int  // microseconds that the script probably needs for a key
	meters []meter.Meter
	edges  *edges
	leases bool // a limit counts leases
}

func newBound(s *Store, limiter string, rules []core.StoreRule) *bound {
	b := &bound{store: s, limiter: limiter}
	for _, r := range rules {
		rule := boundRule{name: r.Name, limits: encodeLimits(r.Limits, r.DenyUnreadable), denies: r.DenyUnreadable, weight: weightOf(r.Limits), edges: edgesOf(r.Limits), leases: limits.Lease(r.Limits) >= 0}
		for _, l := range r.Limits {
			rule.meters = append(rule.meters, meter.New(limits.Of(l)))
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Rebind implements [core.Bound]. A state names the limit that it is of, so
// that unchanged limits find their states again.
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	return newBound(b.store, b.limiter, rules), nil
}

// Beside returns a Bound for some of the limits of the same rules. Unlike after
// a Rebind, both Bounds may be used: see resilient.Divisible.
func (b *bound) Beside(rules []core.StoreRule) (core.Bound, error) { return b.Rebind(rules) }

// namedItems is the working memory of an operation.
type namedItems struct{ items []namedItem }

var itemsPool = sync.Pool{New: func() any { return new(namedItems) }}

func (b *bound) items(batch *core.Batch) *namedItems {
	n := itemsPool.Get().(*namedItems)
	for i := range batch.Items {
		it := &batch.Items[i]
		rule := &b.rules[it.Rule]
		n.items = append(n.items, namedItem{it, rule, core.StoreRule{Name: rule.name}.StoredKey(b.limiter, it.Key)})
	}
	return n
}

func (n *namedItems) free() {
	clear(n.items)
	n.items = n.items[:0]
	itemsPool.Put(n)
}

// Take implements [core.Bound].
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	verb := verbTake
	if batch.Peek {
		verb = verbPeek
	}
	return b.decide(ctx, verb, batch)
}

// Charge implements [core.Bound].
func (b *bound) Charge(ctx context.Context, batch *core.Batch) error {
	return b.decide(ctx, verbCharge, batch)
}

// decide runs a verb that has results.
func (b *bound) decide(ctx context.Context, verb byte, batch *core.Batch) error {
	n := b.items(batch)
	defer n.free()
	op := b.store.begin(ctx)
	groups := b.store.group(n.items)
	if len(groups) > 1 {
		allowed, err := b.store.takeApart(op, verb, groups)
		batch.Allowed = allowed
		return err
	}
	allowed, err := b.store.ask(op, verb, n.items)
	if err != nil && crossesSlots(err) {
		b.store.layout.Store(oneSlot)
		allowed, err = b.store.takeApart(op, verb, b.store.group(n.items))
	}
	batch.Allowed = allowed
	return err
}

// ask runs the script once for the items and fills in their results.
func (s *Store) ask(op operation, verb byte, items []namedItem) (bool, error) {
	if len(items) == 0 {
		return true, nil
	}
	r, err := s.do(op, verb, items)
	if err != nil {
		return false, err
	}
	s.reportReply(r, items)
	return r.fill(items), nil
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.each(ctx, verbRefund, batch)
}

// Reset implements [core.Bound].
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	return b.each(ctx, verbReset, batch)
}

// each runs a verb that has no results. On a cluster, a failure for some keys
// does not stop the others.
func (b *bound) each(ctx context.Context, verb byte, batch *core.Batch) error {
	n := b.items(batch)
	defer n.free()
	op := b.store.begin(ctx)
	var errs []error
	for _, g := range b.store.group(n.items) {
		_, err := b.store.do(op, verb, g)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
