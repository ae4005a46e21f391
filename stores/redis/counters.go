package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// counters are the Counters of a Store.
type counters struct {
	store   *Store
	limiter string
	rules   []counterRule
}

type counterRule struct {
	name       string
	limits     any  // a string, as the script reads it, boxed once
	denies     bool // deny a key whose value cannot be read
	weight     int  // microseconds that the script probably needs for a key
	answer     int  // bytes of the reply for a key
	meters     []meter.Meter
	algorithms algorithms
	edges      *edges
}

func newCounters(s *Store, limiter string, rules []core.StoreRule) *counters {
	b := &counters{store: s, limiter: limiter}
	for _, r := range rules {
		rule := counterRule{
			name: r.Name, limits: encodeLimits(r.Limits, r.DenyUnreadable), denies: r.DenyUnreadable,
			weight: itemWeight, answer: replyTime, edges: edgesOf(r.Limits),
		}
		for _, l := range r.Limits {
			m := meter.New(limits.Of(l))
			rule.meters = append(rule.meters, m)
			rule.weight += weightOf(&m)
			rule.answer += answerSize(&m)
			rule.algorithms |= only(m.Algorithm())
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Reopen implements [core.Counters]. A state names the limit that it is of, so
// that unchanged limits find their states again.
func (b *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	return newCounters(b.store, b.limiter, rules), nil
}

// Do implements [core.Counters].
func (b *counters) Do(ctx context.Context, batch *core.Batch) error {
	switch batch.Op {
	case core.OpTake:
		return b.decide(ctx, verbTake, batch)
	case core.OpPeek:
		return b.decide(ctx, verbPeek, batch)
	case core.OpCharge:
		return b.decide(ctx, verbCharge, batch)
	case core.OpGrant:
		return b.decide(ctx, verbGrant, batch)
	case core.OpRefund:
		return b.each(ctx, verbRefund, batch)
	case core.OpReset:
		return b.each(ctx, verbReset, batch)
	case core.OpBlock:
		items := slices.Clone(batch.Items) // the script takes the time in place of the cost
		for i := range items {
			items[i].Cost, items[i].Quotas = batch.For.Microseconds(), nil
		}
		return b.each(ctx, verbBlock, &core.Batch{Items: items})
	case core.OpResetAll:
		return b.resetAll(ctx)
	default:
		return fmt.Errorf("redis: %v: %w", batch.Op, core.ErrUnsupported)
	}
}

// namedItems is the working memory of an operation.
type namedItems struct{ items []namedItem }

var itemsPool = sync.Pool{New: func() any { return new(namedItems) }}

func (b *counters) items(batch *core.Batch) *namedItems {
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

// decide runs a verb that has results.
func (b *counters) decide(ctx context.Context, verb byte, batch *core.Batch) error {
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
	return s.results(r, verb, items)
}

// results fills in the results of a reply.
func (s *Store) results(r reply, verb byte, items []namedItem) (allowed bool, err error) {
	s.reportReply(r, items)
	if err = r.fill(verb, items); err != nil {
		return false, err
	}
	return !r.denied, nil
}

// each runs a verb that has no results. On a cluster, a failure for some keys
// does not stop the others.
func (b *counters) each(ctx context.Context, verb byte, batch *core.Batch) error {
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

// resetAll goes, as [Store.Scan] does, through all of the server's keys, in small steps,
// and needs the right to SCAN.
func (b *counters) resetAll(ctx context.Context) error {
	nodes, err := b.store.nodes(ctx)
	if err != nil {
		return err
	}
	for i := range b.rules {
		for _, node := range nodes {
			if err := b.store.scan(ctx, node, b.limiter, &b.rules[i], b.store.forget); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget deletes the items.
func (s *Store) forget(ctx context.Context, items []namedItem) error {
	for _, group := range s.group(items) {
		if _, err := s.do(s.begin(ctx), verbReset, group); err != nil {
			return fmt.Errorf("redis: forgetting all keys: %w", err)
		}
	}
	return nil
}
