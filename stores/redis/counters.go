package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/core"
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
	calendars  []calendar
	dated      atomic.Pointer[datedLimits]
}

// callWeight is how many microseconds of the script's time a call takes beside those for its items,
// and itemWeight an item beside those for its limits.
const callWeight, itemWeight = 1, 2

func newCounters(s *Store, limiter string, rules []core.StoreRule) *counters {
	b := &counters{store: s, limiter: limiter, rules: make([]counterRule, len(rules))}
	for i, r := range rules {
		rule := &b.rules[i]
		rule.name, rule.denies, rule.limits = r.Name, r.DenyUnreadable, encodeLimits(r.Limits, r.DenyUnreadable)
		rule.weight, rule.answer = itemWeight, replyTime
		for j, limit := range r.Limits {
			l := meter.FromCore(limit)
			m := meter.New(l)
			rule.meters = append(rule.meters, m)
			// Decisions that take long, because much is stored, do not share a command with many.
			rule.weight += 1 + int(m.MostBytes()/64)
			rule.answer += answerSize(&m)
			rule.algorithms |= only(l.Algorithm)
			if l.Algorithm == meter.Calendar {
				rule.calendars = append(rule.calendars, calendar{j, l.Zone, l.Window})
			}
		}
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

// item is an item of a batch with the store's data for it.
type item struct {
	of     *core.Item
	rule   *counterRule
	name   string
	limits any // as the script reads them
	cost   int64
	at     int64 // for a refund
	place  int   // of the limits among the arguments of the command
}

// itemList is the working memory of an operation.
type itemList struct{ items []item }

var itemLists = sync.Pool{New: func() any { return new(itemList) }}

func (b *counters) items(batch *core.Batch) *itemList {
	list := itemLists.Get().(*itemList)
	for i := range batch.Items {
		of := &batch.Items[i]
		rule := &b.rules[of.Rule]
		name := core.StoreRule{Name: rule.name}.StoredKey(b.limiter, of.Key)
		list.items = append(list.items, item{of: of, rule: rule, name: name, limits: rule.limitsFor(of, b.store.options.clock), cost: of.Cost})
	}
	return list
}

func (l *itemList) free() {
	clear(l.items)
	l.items = l.items[:0]
	itemLists.Put(l)
}

// decide runs a verb that has results.
func (b *counters) decide(ctx context.Context, verb byte, batch *core.Batch) (err error) {
	list := b.items(batch)
	defer list.free()
	s, op := b.store, b.store.begin(ctx)
	if s.layout.Load() == anyKeys || len(list.items) < 2 {
		batch.Allowed, err = s.ask(op, verb, list.items)
		if !crossesSlots(err) {
			return err
		}
		s.layout.Store(oneSlot)
	}
	batch.Allowed, err = s.decideGroups(op, verb, s.group(list.items))
	return err
}

// ask runs the script once for the items and fills in their results.
func (s *Store) ask(op operation, verb byte, items []item) (bool, error) {
	if len(items) == 0 {
		return true, nil
	}
	r, err := s.do(op, verb, items)
	if err != nil {
		return false, err
	}
	if r.unreadable || r.ahead {
		s.report(r, items)
	}
	return !r.denied, r.fill(verb, items)
}

// each runs a verb that has no results. On a cluster, a failure for some keys
// does not stop the others.
func (b *counters) each(ctx context.Context, verb byte, batch *core.Batch) error {
	list := b.items(batch)
	defer list.free()
	op := b.store.begin(ctx)
	var errs []error
	groups := b.store.group(list.items)
	for _, g := range groups {
		_, err := b.store.do(op, verb, g)
		if err != nil && len(groups) > 1 { // a second refund would give the others' hits back twice
			err = afterOthers(err)
		}
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
func (s *Store) forget(ctx context.Context, items []item) error {
	for _, group := range s.group(items) {
		if _, err := s.do(s.begin(ctx), verbReset, group); err != nil {
			return fmt.Errorf("redis: forgetting all keys: %w", err)
		}
	}
	return nil
}
