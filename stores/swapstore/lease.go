package swapstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

var _ core.Leaser = (*bound)(nil)

// Release implements [core.Leaser].
func (b *bound) Release(ctx context.Context, batch *core.Batch) error {
	return b.leases(ctx, batch, (*item).release)
}

// Renew implements [core.Leaser].
func (b *bound) Renew(ctx context.Context, batch *core.Batch) error {
	return b.leases(ctx, batch, (*item).renew)
}

// leases changes the leases of the batch: those of one key in one step.
func (b *bound) leases(ctx context.Context, batch *core.Batch, change func(it *item, now int64, lease core.Item) bool) error {
	items := b.items(batch)
	byName := map[string][]core.Item{}
	todo := items[:0]
	for i := range items {
		it := &items[i]
		if it.rule.leases < 0 {
			continue
		}
		if byName[it.name] == nil {
			todo = append(todo, *it)
		}
		byName[it.name] = append(byName[it.name], *it.Item)
	}
	var errs []error
	for attempt := range b.attempts {
		if len(todo) == 0 {
			break
		}
		if err := errors.Join(b.pause(ctx, attempt), b.load(ctx, todo)); err != nil {
			return notcharged.Unmark(errors.Join(append(errs, err)...))
		}
		left := todo[:0]
		for i := range todo {
			it := &todo[i]
			stored, err := b.storeLeases(ctx, it, byName[it.name], change)
			switch {
			case err != nil:
				errs = append(errs, err)
			case !stored:
				left = append(left, *it)
			}
		}
		todo = left
	}
	if len(todo) > 0 {
		errs = append(errs, fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended))
	}
	return notcharged.Unmark(errors.Join(errs...))
}

// storeLeases changes leases of an item that has been loaded, and swaps its value. It
// returns false if another writer has replaced the value.
func (b *bound) storeLeases(ctx context.Context, it *item, leases []core.Item, change func(it *item, now int64, lease core.Item) bool) (bool, error) {
	if it.is == newer || it.is == unreadable && it.rule.deny {
		return true, nil // the value stays
	}
	now, changed := b.now(), false
	it.rule.meters[it.rule.leases].Advance(it.states[it.rule.leases], now)
	for i := range leases {
		changed = change(it, now, leases[i]) || changed
	}
	if !changed {
		return true, nil
	}
	return b.store(ctx, it, now)
}

// release ends a lease, and returns whether the item had it.
func (it *item) release(_ int64, lease core.Item) bool {
	m, w := &it.rule.meters[it.rule.leases], it.states[it.rule.leases]
	return m.Release(w, lease.Lease)
}

// renew makes a lease end a window from now.
func (it *item) renew(now int64, lease core.Item) bool {
	if lease.Cost <= 0 {
		return false
	}
	m := &it.rule.meters[it.rule.leases]
	m.Renew(it.grow(it.rule.leases, m, lease.Cost), now, lease.Lease, lease.Cost)
	return true
}

// grow makes room for a charge of cost in the state of a limit, and returns it.
// m is the limit's meter, or the one with the quota of the charge.
func (it *item) grow(limit int, m *meter.Meter, cost int64) []uint64 {
	w := it.states[limit]
	if need := m.Words(w, cost); len(w) < need {
		w = make([]uint64, need)
		m.Grow(w, it.states[limit])
		it.states[limit] = w
	}
	return w
}
