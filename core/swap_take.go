package core

import (
	"context"
	"fmt"
)

// swapBound is the Bound of a SwapStore.
type swapBound struct {
	*SwapStore
	limiter string
	rules   []swapRule
}

type swapRule struct {
	name     string
	ids      []identity
	meters   []meter
	deny     bool  // a value that cannot be read denies its key
	shortest int64 // window of all limits
}

func newSwapBound(s *SwapStore, limiter string, rules []StoreRule) *swapBound {
	b := &swapBound{SwapStore: s, limiter: limiter}
	for _, r := range rules {
		rule := swapRule{name: r.Name, meters: newMeters(r.Limits), deny: r.DenyUnreadable || s.unreadable == DenyUnreadable, shortest: MaxWindow.Microseconds()}
		for i, l := range r.Limits {
			rule.ids = append(rule.ids, l.identity())
			rule.shortest = min(rule.shortest, rule.meters[i].window)
		}
		b.rules = append(b.rules, rule)
	}
	return b
}

// Rebind implements [Bound]. Values say which limits they count for: those that
// stay are found again.
func (b *swapBound) Rebind(rules []StoreRule) (Bound, error) {
	return newSwapBound(b.SwapStore, b.limiter, rules), nil
}

// Beside returns a Bound for some of the limits of the same rules. Unlike after
// a Rebind, both may be used: see resilient.Divisible.
func (b *swapBound) Beside(rules []StoreRule) (Bound, error) { return b.Rebind(rules) }

// swapItem is an item with its value as last loaded.
type swapItem struct {
	*Item
	rule   *swapRule
	name   string
	loaded SwapValue
	*stored
	mend bool // store the value even if nothing is charged
}

func (b *swapBound) items(batch *Batch) []swapItem {
	items := make([]swapItem, len(batch.Items))
	for i := range items {
		it := &batch.Items[i]
		rule := &b.rules[it.Rule]
		items[i] = swapItem{Item: it, rule: rule, name: StoredKey(b.limiter, rule.name, it.Key)}
	}
	return items
}

func (b *swapBound) load(ctx context.Context, items []swapItem) error {
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
			it.is = readable // there is none
		case it.is != readable:
			b.reports.report(b.limiter, it.name, it.is == newer || it.rule.deny, now)
		}
	}
	return nil
}

// judge decides on an item as loaded.
func (it *swapItem) judge(now int64) bool {
	allowed := true
	it.At, it.mend = now, false
	for i := range it.rule.meters {
		m, w := &it.rule.meters[i], it.states[i]
		it.mend = it.mend || m.far(w, now)
		m.advance(w, now)
		it.At = max(it.At, m.at(w, now))
		ok := m.admits(w, now, it.Cost)
		report(&it.Results[i], m, w, now, it.Cost, ok)
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
func (it *swapItem) denyUnreadable(now int64) {
	if it.is == newer || it.is == unreadable && it.rule.deny {
		it.usedUp = now + it.rule.shortest
	}
	if it.is == unreadable && it.rule.deny {
		it.foreign = []foreignState{usedUpRecord(now, it.rule.shortest)}
		it.mend = true
	}
}

// use fills in results as if all limits were used up for so long.
func (it *swapItem) use(wait int64) {
	for i := range it.Results {
		r := &it.Results[i]
		r.Remaining, r.ResetAfter, r.MoreAfter = 0, max(r.ResetAfter, micros(wait)), max(r.MoreAfter, micros(wait))
		if it.Cost > 0 {
			r.Allowed, r.RetryAfter = false, max(r.RetryAfter, micros(wait))
		}
	}
}

// charge adds the cost to the states as loaded.
func (it *swapItem) charge(now int64) {
	for i := range it.rule.meters {
		m := &it.rule.meters[i]
		w := it.states[i]
		if need := m.words(w, it.Cost); len(w) < need {
			w = make([]uint64, need)
			m.grow(w, it.states[i])
			it.states[i] = w
		}
		m.charge(w, now, it.Cost)
		report(&it.Results[i], m, w, now, it.Cost, true)
	}
}

// store swaps the item's states for what was loaded.
func (b *swapBound) store(ctx context.Context, it *swapItem, now int64) (bool, error) {
	value, expiry := it.encode(it.rule.ids, it.rule.meters, now)
	return b.swapper.Swap(ctx, it.name, it.loaded, value, micros(max(expiry-now, 1)))
}

// Take implements [Bound].
func (b *swapBound) Take(ctx context.Context, batch *Batch) error {
	items := b.items(batch)
	todo := items // those not charged yet
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		if err := b.load(ctx, todo); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		now := b.now()
		batch.Allowed = true
		for i := range todo {
			batch.Allowed = todo[i].judge(now) && batch.Allowed
		}
		if !batch.Allowed || batch.Peek {
			return b.refuse(ctx, items, todo, now)
		}
		var err error
		if todo, err = b.swapAll(ctx, todo, now); err != nil {
			return b.undo(ctx, items, todo, err)
		}
		if len(todo) == 0 {
			return nil
		}
	}
	return b.undo(ctx, items, todo, fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, ErrContended))
}

// swapAll charges and stores one item after the other until one has been
// changed by somebody else, and returns what is left to do.
func (b *swapBound) swapAll(ctx context.Context, todo []swapItem, now int64) ([]swapItem, error) {
	for len(todo) > 0 {
		it := &todo[0]
		if it.Cost > 0 {
			it.charge(now)
			stored, err := b.store(ctx, it, now)
			if err != nil || !stored {
				return todo, err
			}
		}
		todo = todo[1:]
	}
	return todo, nil
}

// refuse ends a Take that charges nothing: what the items before todo were
// charged is given back.
func (b *swapBound) refuse(ctx context.Context, items, todo []swapItem, now int64) error {
	for i := range todo {
		if it := &todo[i]; it.mend && (it.is == readable || it.Cost > 0) {
			if _, err := b.store(ctx, it, now); err != nil { // whoever came in between has mended it
				return b.undo(ctx, items, todo, err)
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
		return err
	}
	for i := range done {
		done[i].judge(now)
	}
	return nil
}
