package resilient

import (
	"context"
	"errors"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

var _ core.Leaser = (*bound)(nil)

// Release implements [core.Leaser]. A lease is released where it was taken: in this process,
// and in the store if the store may have it.
func (b *bound) Release(ctx context.Context, batch *core.Batch) error {
	err := b.releaseOwn(ctx, batch)
	var items []core.Item
	for i := range batch.Items {
		if it := &batch.Items[i]; b.leased(it) && b.drop(it) {
			items = append(items, *it)
		}
	}
	return errors.Join(err, b.askLeases(items, func(one *core.Batch, t *tickets) error {
		return b.do(ctx, one, release, t)
	}))
}

// Renew implements [core.Leaser]. It renews the leases in this process also if the store does
// not answer. It also tells the store of the leases of an outage.
func (b *bound) Renew(ctx context.Context, batch *core.Batch) error {
	err := b.renewOwn(ctx, batch)
	items := slices.Clone(batch.Items)
	items = slices.DeleteFunc(items, func(it core.Item) bool { return !b.leased(&it) })
	b.extend(&core.Batch{Items: items})
	return errors.Join(err, b.askLeases(items, func(one *core.Batch, t *tickets) error {
		b.asking(one)
		outages := b.outagesOf(&one.Items[0])
		err := b.do(ctx, one, renew, t)
		if err == nil {
			b.renewed(one, outages)
		}
		return err
	}))
}

// askLeases calls ask with the leases of each server apart, so that those of one server do not
// lapse because another server is down. A server whose circuit is open is not asked.
func (b *bound) askLeases(items []core.Item, ask func(one *core.Batch, t *tickets) error) error {
	var errs []error
	for len(items) > 0 {
		server := b.serverOf(items[0].Rule, items[0].Key)
		var one, rest []core.Item
		for _, it := range items {
			if b.serverOf(it.Rule, it.Key) == server {
				one = append(one, it)
			} else {
				rest = append(rest, it)
			}
		}
		items = rest
		batch := &core.Batch{Items: one}
		t, err := b.circuits.allow(b.where, batch)
		if err == nil {
			err = ask(batch, &t)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// releaseOwn ends leases in this process.
func (b *bound) releaseOwn(ctx context.Context, batch *core.Batch) error {
	if !b.hasLeases || b.config.Meanwhile != ModeInProcess {
		return nil
	}
	return limits.Release(ctx, b.local, batch)
}

// renewOwn makes leases count in this process, above its share if need be.
func (b *bound) renewOwn(ctx context.Context, batch *core.Batch) error {
	if !b.hasLeases || b.config.Meanwhile != ModeInProcess {
		return nil
	}
	return limits.Renew(ctx, b.local, batch)
}

var (
	release intime.Op = func(b core.Bound, ctx context.Context, batch *core.Batch) error { return limits.Release(ctx, b, batch) }
	renew   intime.Op = func(b core.Bound, ctx context.Context, batch *core.Batch) error { return limits.Renew(ctx, b, batch) }
)

// tell tells the store of the leases of a batch's keys that it may not know: those of an
// outage, and those that it may have lost. It then decides with all that run.
func (b *bound) tell(ctx context.Context, batch *core.Batch) error {
	if !b.hasLeases {
		return nil
	}
	for i := range batch.Items {
		if it := &batch.Items[i]; b.leased(it) {
			if err := b.tellKey(ctx, it); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bound) tellKey(ctx context.Context, it *core.Item) error {
	outages := b.outagesOf(it)
	of, held := b.beginTelling(it, outages)
	if of == nil {
		return nil
	}
	defer b.endTelling(it, of) // also if the store panics
	if len(held) > 0 {
		batch := b.leaseBatch(it, held)
		err := b.call(ctx, b.inner, batch, renew)
		b.noteTold(of, batch, err, outages)
		if err != nil {
			return err
		}
	}
	over := b.overOf(of)
	if len(over) == 0 {
		return nil
	}
	if err := b.call(ctx, b.inner, b.leaseBatch(it, over), release); err != nil {
		return err
	}
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	for lease := range over {
		delete(of.leases, lease)
	}
	return nil
}

// leaseBatch returns a batch of leases of an item's key.
func (b *bound) leaseBatch(it *core.Item, costs map[uint64]int64) *core.Batch {
	batch := &core.Batch{}
	for lease, cost := range costs {
		batch.Items = append(batch.Items, core.Item{Rule: it.Rule, Key: it.Key, Cost: cost, Lease: lease, Results: make([]core.Result, b.limits(it.Rule))})
	}
	return batch
}
