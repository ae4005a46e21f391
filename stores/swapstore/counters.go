package swapstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// counters are the Counters of a Store.
type counters struct {
	*Store
	limiter string
	rules   []rule
}

type rule struct {
	core.StoreRule
	limits   []limit
	shortest int64 // the shortest window of all limits
}

func newCounters(s *Store, limiter string, rules []core.StoreRule) *counters {
	c := &counters{Store: s, limiter: limiter}
	for _, r := range rules {
		own := rule{StoreRule: r, shortest: core.MaxWindow.Microseconds()}
		for i, l := range r.Limits {
			own.limits = append(own.limits, newLimit(l))
			own.shortest = min(own.shortest, own.limits[i].Window)
		}
		c.rules = append(c.rules, own)
	}
	return c
}

// Reopen implements [core.Counters]. A stored value names the limits that it counts for, so that
// unchanged limits find their states again.
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	return newCounters(c.Store, c.limiter, rules), nil
}

// item is an item with its value as last loaded.
type item struct {
	*core.Item
	rule   *rule
	name   string
	loaded Value
	*stored
	mend bool        // store the value even if nothing is charged
	room meter.Meter // of a limit with the quota of the item
}

// Do implements [core.Counters].
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	items := make([]item, len(b.Items))
	for i := range items {
		it := &b.Items[i]
		items[i] = item{Item: it, rule: &c.rules[it.Rule], name: c.rules[it.Rule].StoredKey(c.limiter, it.Key)}
	}
	switch b.Op {
	case core.OpTake, core.OpPeek, core.OpCharge:
		return c.take(ctx, b, items)
	case core.OpRefund:
		return c.each(ctx, b.Op, items, c.refund)
	case core.OpGrant:
		b.Allowed = true
		return c.each(ctx, b.Op, items, c.grant)
	case core.OpReset:
		return c.swapper.Delete(ctx, namesOf(items))
	case core.OpBlock:
		return c.each(ctx, b.Op, items, func(it *item, now int64) (bool, error) { return c.block(it, now, b.For.Microseconds()) })
	default:
		return fmt.Errorf("limiter %q: %v: %w", c.limiter, b.Op, core.ErrUnsupported)
	}
}

func namesOf(items []item) []string {
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].name
	}
	return names
}

// load loads the values of the items. Before another attempt it waits for a random time, so that
// writers that have collided once do not collide again.
func (c *counters) load(ctx context.Context, attempt int, items []item) error {
	if attempt > 0 {
		timer := time.NewTimer(rand.N(time.Duration(1<<min(attempt, 7)) * 100 * time.Microsecond))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	values, err := c.swapper.Load(ctx, namesOf(items))
	if err != nil {
		return err
	}
	now := c.now()
	for i := range items {
		it := &items[i]
		it.loaded = values[i]
		it.stored = decode(it.loaded.Value, it.rule.limits, now)
		if it.loaded.Version == nil {
			it.is = readable // there is no value
		}
		if it.is != readable {
			action := "replace"
			if it.is == newer || it.rule.DenyUnreadable {
				action = "deny"
			}
			c.warn(now, "floodgate: a stored value cannot be read", "limiter", c.limiter, "name", it.name, "action", action)
		}
	}
	return nil
}

// store replaces the loaded value by one with the item's states. It returns false if another writer
// has replaced it.
func (c *counters) store(ctx context.Context, it *item, now int64) (bool, error) {
	value, expiry := it.encode(it.rule.limits, now)
	return c.swapper.Swap(ctx, it.name, it.loaded, value, meter.Duration(max(expiry-now, 1)))
}

func (c *counters) contended() error {
	return notcharged.Error(fmt.Errorf("limiter %q: %d attempts: %w", c.limiter, c.attempts, core.ErrContended))
}

// replaceable returns an error if the item has the value of a later version of this module.
func (c *counters) replaceable(it *item) error {
	if it.is == newer {
		return fmt.Errorf("limiter %q: %s: the stored value has the format of a later version, which this one does not replace", c.limiter, it.name)
	}
	return nil
}

// take takes, peeks or charges. It decides on all items, and then charges and swaps one after
// another. If another writer has changed one, it decides again on those that are left.
func (c *counters) take(ctx context.Context, b *core.Batch, items []item) error {
	done := 0 // so many items have been charged
	for attempt := range c.attempts {
		if err := c.load(ctx, attempt, items[done:]); err != nil {
			return c.undo(ctx, items[:done], notcharged.Error(err))
		}
		now, allowed := c.now(), true
		for i := range items[done:] {
			it := &items[done+i]
			allowed = c.judge(it, now, it.Cost) && allowed
			if err := c.replaceable(it); err != nil && b.Op == core.OpCharge {
				return c.undo(ctx, items[:done], notcharged.Error(err))
			}
		}
		b.Allowed = allowed || b.Op == core.OpCharge
		if !b.Allowed || b.Op == core.OpPeek {
			return c.deny(ctx, items, done, now)
		}
		charged, err := c.charge(ctx, items[done:], now)
		done += charged
		if err != nil {
			return c.undo(ctx, items[:done], err)
		}
		if done == len(items) {
			return nil
		}
	}
	return c.undo(ctx, items[:done], c.contended())
}

// charge charges and swaps one item after another, until another writer has changed one. It returns
// how many items it has done.
func (c *counters) charge(ctx context.Context, items []item, now int64) (int, error) {
	for i := range items {
		it := &items[i]
		if it.Cost == 0 {
			continue
		}
		it.charge(now)
		if stored, err := c.store(ctx, it, now); err != nil || !stored {
			return i, err
		}
	}
	return len(items), nil
}

// meter returns the meter of a limit with the quota of the item.
func (it *item) meter(limit int) *meter.Meter {
	quota := meter.Own
	if it.Quotas != nil {
		quota = it.Quotas[limit]
	}
	return it.rule.limits[limit].For(quota, &it.room)
}

// judge decides on a cost with the states that were loaded.
func (c *counters) judge(it *item, now, cost int64) bool {
	allowed := true
	it.At, it.mend = now, false
	for i := range it.rule.limits {
		m, w, r := it.meter(i), it.states[i], (*meter.Result)(&it.Results[i])
		at, far := m.Decide(r, w, now, cost)
		if far {
			it.mend = true
			c.warn(now, "floodgate: a stored time is a window or more ahead: while clocks differ so much, limits do not hold",
				"limiter", c.limiter, "name", it.name, "advice", "set the clocks of all instances")
		}
		it.At = max(it.At, at)
		m.Report(r, w, now, cost)
		allowed = allowed && r.Allowed
	}
	denies := it.is == unreadable && it.rule.DenyUnreadable
	if denies || it.is == newer {
		it.denial, it.mend = denialOf(now, it.rule.shortest), denies || it.mend
	}
	if it.denial.expiry <= now {
		return allowed
	}
	wait := meter.Duration(it.denial.expiry - now)
	for i := range it.Results {
		r := &it.Results[i]
		r.Remaining, r.ResetAfter, r.MoreAfter = 0, max(r.ResetAfter, wait), max(r.MoreAfter, wait)
		if cost > 0 {
			r.Allowed, r.RetryAfter = false, max(r.RetryAfter, wait)
		}
	}
	return cost == 0
}

func (it *item) charge(now int64) {
	for i := range it.rule.limits {
		m, r := it.meter(i), (*meter.Result)(&it.Results[i])
		w := m.Room(it.states[i], it.Cost)
		it.states[i] = w
		m.Decide(r, w, now, it.Cost) // again, because a block may have changed r
		m.Charge(r, w, now, it.Cost)
		m.Report(r, w, now, it.Cost)
	}
}

// deny ends a take that is denied, or a peek: it stores what a decision changes although nothing is
// charged, and refunds the items that have been charged.
func (c *counters) deny(ctx context.Context, items []item, done int, now int64) error {
	charged, left := items[:done], items[done:]
	for i := range left {
		if it := &left[i]; it.mend && (it.is == readable || it.Cost > 0) {
			if _, err := c.store(ctx, it, now); err != nil {
				return c.undo(ctx, charged, notcharged.Error(err))
			}
		}
	}
	if done == 0 {
		return nil
	}
	if err := c.undo(ctx, charged, nil); err != nil {
		return err
	}
	for i := range charged {
		c.judge(&charged[i], now, charged[i].Cost)
	}
	return nil
}

// undo gives back all that a take has charged, and returns cause. If that fails, the error does not
// wrap core.ErrNotCharged.
func (c *counters) undo(ctx context.Context, charged []item, cause error) error {
	if err := c.each(context.WithoutCancel(ctx), core.OpRefund, charged, c.refund); err != nil {
		return errors.Join(notcharged.Unmark(cause), notcharged.Unmark(err))
	}
	return cause
}

// change changes the states of an item as loaded, and returns whether they must be stored.
type change func(it *item, now int64) (bool, error)

// each changes one item after another. If one fails, the others are changed all the same. Only a
// grant that has granted nothing yet stops: the caller may then try again. The error wraps
// core.ErrNotCharged only if nothing has been changed.
func (c *counters) each(ctx context.Context, op core.Op, items []item, change change) error {
	var errs []error
	for i := range items {
		err := c.update(ctx, items[i:i+1], change)
		if i == 0 && (op == core.OpGrant || len(items) == 1) && errors.Is(err, core.ErrNotCharged) {
			return err
		}
		errs = append(errs, notcharged.Unmark(err))
	}
	return errors.Join(errs...)
}

// update loads, changes and swaps one item. It tries again if another writer has replaced the value
// in between.
func (c *counters) update(ctx context.Context, one []item, change change) error {
	for attempt := range c.attempts {
		if err := c.load(ctx, attempt, one); err != nil {
			return notcharged.Error(err)
		}
		now := c.now()
		if store, err := change(&one[0], now); err != nil || !store {
			return notcharged.Error(err)
		}
		if stored, err := c.store(ctx, &one[0], now); err != nil || stored {
			return err
		}
	}
	return c.contended()
}

// known reports whether the item has a value that can be read.
func (it *item) known() bool { return it.loaded.Version != nil && it.is == readable }

func (c *counters) refund(it *item, now int64) (bool, error) {
	if !it.known() || it.Cost == 0 {
		return false, nil
	}
	for i := range it.rule.limits {
		m := it.meter(i)
		m.Refund(it.states[i], now, it.At, it.Results[i].ResetAfter.Microseconds(), it.Cost)
	}
	return true, nil
}

func (c *counters) grant(it *item, now int64) (bool, error) {
	if err := c.replaceable(it); err != nil {
		return false, err
	}
	known := it.known()
	if known {
		for i := range it.rule.limits {
			it.meter(i).Grant(it.states[i], now, it.Cost)
		}
	}
	c.judge(it, now, 0)
	return known, nil
}

func (c *counters) block(it *item, now, length int64) (bool, error) {
	if err := c.replaceable(it); err != nil {
		return false, err
	}
	it.denial = denialOf(now, length)
	return length > 0 || it.loaded.Version != nil, nil
}
