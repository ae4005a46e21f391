package swapstore

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// bound is the Bound of a Store.
type bound struct {
	*Store
	limiter string
	rules   []boundRule
}

type boundRule struct {
	name     string
	ids      []meter.Identity
	meters   []meter.Meter
	deny     bool  // a value that cannot be read denies its key
	shortest int64 // the shortest window of all limits
	leases   int   // the limit that counts leases; -1: none
}

func newBound(s *Store, limiter string, rules []core.StoreRule) *bound {
	b := &bound{Store: s, limiter: limiter}
	for _, r := range rules {
		rule := boundRule{name: r.Name, deny: r.DenyUnreadable, shortest: core.MaxWindow.Microseconds(), leases: -1}
		for i, l := range r.Limits {
			if l.Algorithm == core.Leases {
				rule.leases = i
			}
			m := limits.Of(l)
			rule.ids = append(rule.ids, m.Identity())
			rule.meters = append(rule.meters, meter.New(m))
			rule.shortest = min(rule.shortest, m.Window)
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Rebind implements [core.Bound]. A stored value names the limits that it
// counts for, so that unchanged limits find their states again.
func (b *bound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	return newBound(b.Store, b.limiter, rules), nil
}

// Beside returns a Bound for some of the limits of the same rules. Unlike after
// a Rebind, both Bounds may be used: see resilient.Divisible.
func (b *bound) Beside(rules []core.StoreRule) (core.Bound, error) { return b.Rebind(rules) }

// item is an item with its value as last loaded.
type item struct {
	*core.Item
	rule   *boundRule
	name   string
	loaded Value
	*stored
	mend   bool // store the value even if nothing is charged
	ahead  bool // a stored time was a window or more ahead
	leased bool // the take has added its lease
	room   meter.Meter
}

func (b *bound) items(batch *core.Batch) []item {
	items := make([]item, len(batch.Items))
	for i := range items {
		it := &batch.Items[i]
		rule := &b.rules[it.Rule]
		items[i] = item{Item: it, rule: rule, name: core.StoreRule{Name: rule.name}.StoredKey(b.limiter, it.Key)}
	}
	return items
}

func (b *bound) load(ctx context.Context, items []item) error {
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].name
	}
	values, err := b.swapper.Load(ctx, names)
	if err != nil {
		return err
	}
	now := b.now()
	for i := range items {
		it := &items[i]
		it.loaded = values[i]
		it.stored = decodeStored(it.loaded.Value, it.rule.ids, it.rule.meters, now)
		switch {
		case it.loaded.Version == nil:
			it.is = readable // there is no value
		case it.is != readable:
			b.reports.report(b.limiter, it.name, it.is == newer || it.rule.deny, now)
		}
	}
	return nil
}

// meter returns the meter of a limit with the quota of the item. If unlimited is
// true, the limit denies nothing.
func (it *item) meter(limit int) (m *meter.Meter, unlimited bool) {
	quota := meter.Own
	if it.Quotas != nil {
		quota = it.Quotas[limit]
	}
	return it.rule.meters[limit].For(quota, &it.room)
}

// judge decides on an item with the states that were loaded.
func (it *item) judge(now int64) bool {
	allowed := true
	it.At, it.mend = now, false
	for i := range it.rule.meters {
		m, unlimited := it.meter(i)
		w := it.states[i]
		if m.Far(w, now) {
			it.mend, it.ahead = true, true
		}
		m.Advance(w, now)
		it.At = max(it.At, m.At(w, now))
		ok := unlimited || m.Admits(w, now, it.Cost)
		m.Report((*meter.Result)(&it.Results[i]), w, now, it.Cost, ok)
		allowed = allowed && ok
	}
	it.denyUnreadable(now)
	if it.usedUp > now {
		it.use(it.usedUp - now)
		return it.Cost == 0
	}
	return allowed
}

// denyUnreadable begins the time for which a value that cannot be read denies
// its key. The value of a newer version is left as it is.
func (it *item) denyUnreadable(now int64) {
	if it.is == newer || it.is == unreadable && it.rule.deny {
		it.usedUp = now + it.rule.shortest
	}
	if it.is == unreadable && it.rule.deny {
		it.foreign = []foreignState{usedUpRecord(now, it.rule.shortest)}
		it.mend = true
	}
}

// use fills in results as if all limits were used up for this time, in
// microseconds.
func (it *item) use(wait int64) {
	for i := range it.Results {
		r := &it.Results[i]
		r.Remaining, r.ResetAfter, r.MoreAfter = 0, max(r.ResetAfter, meter.Duration(wait)), max(r.MoreAfter, meter.Duration(wait))
		if it.Cost > 0 {
			r.Allowed, r.RetryAfter = false, max(r.RetryAfter, meter.Duration(wait))
		}
	}
}

// charge adds the cost to the states as loaded, and if lease is true, the item's lease.
func (it *item) charge(now int64, lease bool) {
	for i := range it.rule.meters {
		m, _ := it.meter(i)
		w := it.grow(i, m, it.Cost)
		if lease && i == it.rule.leases {
			m.Lease(w, now, it.Lease, it.Cost)
			it.leased = true
		}
		m.Charge(w, now, it.Cost)
		m.Report((*meter.Result)(&it.Results[i]), w, now, it.Cost, true)
	}
}

// store replaces the loaded value by one with the item's states.
func (b *bound) store(ctx context.Context, it *item, now int64) (bool, error) {
	value, expiry := it.encode(it.rule.ids, it.rule.meters, now)
	return b.swapper.Swap(ctx, it.name, it.loaded, value, meter.Duration(max(expiry-now, 1)))
}

// Take implements [core.Bound].
func (b *bound) Take(ctx context.Context, batch *core.Batch) error { return b.take(ctx, batch, false) }

// Charge implements [core.Bound].
func (b *bound) Charge(ctx context.Context, batch *core.Batch) error { return b.take(ctx, batch, true) }

// take is Take, or if always is true, Charge.
func (b *bound) take(ctx context.Context, batch *core.Batch, always bool) error {
	items := b.items(batch)
	todo := items // those not charged yet
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return b.undo(ctx, items, todo, notcharged.Error(err))
		}
		if err := b.load(ctx, todo); err != nil {
			return b.undo(ctx, items, todo, notcharged.Error(err))
		}
		now := b.now()
		batch.Allowed = true
		for i := range todo {
			batch.Allowed = todo[i].judge(now) && batch.Allowed
			if todo[i].ahead {
				b.reports.clocksDiffer(b.limiter, todo[i].name)
			}
		}
		if always {
			batch.Allowed = true
			if err := b.untouchable(todo); err != nil {
				return b.undo(ctx, items, todo, notcharged.Error(err))
			}
		} else if !batch.Allowed || batch.Peek {
			return b.deny(ctx, items, todo, now)
		}
		var err error
		if todo, err = b.swapAll(ctx, todo, now, !always); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		if len(todo) == 0 {
			return nil
		}
	}
	err := fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended)
	return b.undo(ctx, items, todo, notcharged.Error(err))
}

// untouchable returns an error if a charge would replace the value of a later
// version of this module.
func (b *bound) untouchable(todo []item) error {
	for i := range todo {
		if todo[i].is == newer {
			return fmt.Errorf("limiter %q: %s: the stored value has the format of a later version, which this one does not replace", b.limiter, todo[i].name)
		}
	}
	return nil
}

// swapAll charges and stores one item after another, until another writer has
// changed one. It returns the items left to do.
func (b *bound) swapAll(ctx context.Context, todo []item, now int64, lease bool) ([]item, error) {
	for len(todo) > 0 {
		it := &todo[0]
		if it.Cost > 0 {
			it.charge(now, lease)
			stored, err := b.store(ctx, it, now)
			if err != nil || !stored {
				return todo, err
			}
		}
		todo = todo[1:]
	}
	return todo, nil
}

// deny ends a Take that is denied: it refunds the items before todo, which have
// been charged.
func (b *bound) deny(ctx context.Context, items, todo []item, now int64) error {
	for i := range todo {
		if it := &todo[i]; it.mend && (it.is == readable || it.Cost > 0) {
			if _, err := b.store(ctx, it, now); err != nil { // another writer has replaced the value
				return b.undo(ctx, items, todo, notcharged.Error(err))
			}
		}
	}
	done := items[:len(items)-len(todo)]
	if len(done) == 0 {
		return nil
	}
	if err := b.undo(ctx, items, todo, nil); err != nil {
		return err
	}
	if err := b.load(ctx, done); err != nil {
		return notcharged.Error(err)
	}
	for i := range done {
		done[i].judge(now)
	}
	return nil
}
