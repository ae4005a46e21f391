package redisstore

import (
	"context"
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

// Reopen implements [core.Counters]. Each state has the identity of its limit, so
// that unchanged limits find their states again.
func (b *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	return newCounters(b.store, b.limiter, rules), nil
}

// Do implements [core.Counters].
func (b *counters) Do(ctx context.Context, batch *core.Batch) error {
	switch batch.Op {
	case core.OpTake:
		return b.run(ctx, verbTake, batch)
	case core.OpPeek:
		return b.run(ctx, verbPeek, batch)
	case core.OpCharge:
		return b.run(ctx, verbCharge, batch)
	case core.OpGrant:
		return b.run(ctx, verbGrant, batch)
	case core.OpRefund:
		return b.run(ctx, verbRefund, batch)
	case core.OpReset:
		return b.run(ctx, verbReset, batch)
	case core.OpBlock:
		items := slices.Clone(batch.Items) // the cost is the length of the block: see script/main.lua
		for i := range items {
			items[i].Cost = batch.For.Microseconds()
		}
		return b.run(ctx, verbBlock, &core.Batch{Items: items})
	case core.OpResetAll:
		return b.store.scan(ctx, b, verbReset, func(Stored) error { return nil })
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
	place  int   // of the limits in the script's ARGV
}

// itemList is the working memory of an operation.
type itemList struct {
	items  []item
	groups [1][]item
}

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
	l.items, l.groups[0] = l.items[:0], nil
	itemLists.Put(l)
}

// run runs a verb on the items.
func (b *counters) run(ctx context.Context, verb byte, batch *core.Batch) (err error) {
	list := b.items(batch)
	defer list.free()
	s, op := b.store, b.store.begin(ctx)
	allowed := false
	groups := s.group(list)
	if len(groups) == 1 {
		allowed, err = s.ask(op, verb, groups[0])
		if crossesSlots(err) {
			s.layout.Store(oneSlot)
			groups = s.group(list)
		}
	}
	if len(groups) > 1 {
		// Nobody avoids a charge by hanging up between two commands.
		op.ctx = context.WithoutCancel(ctx)
		if verb == verbTake {
			allowed, err = s.takeGroups(op, groups)
		} else {
			allowed, err = s.runGroups(op, verb, groups)
		}
	}
	if verb <= verbGrant {
		batch.Allowed = allowed
	}
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
	if verb > verbGrant {
		return false, nil // it has no results
	}
	return !r.denied, r.fill(verb, items)
}
