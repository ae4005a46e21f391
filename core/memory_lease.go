package core

import (
	"context"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
)

var _ Leaser = (*memoryBound)(nil)

// Release implements [Leaser].
func (b *memoryBound) Release(_ context.Context, batch *Batch) error {
	if len(batch.Items) == 1 {
		return b.releaseOne(&batch.Items[0])
	}
	return b.each(batch, func(p *memtable.Place, item *Item, now int64) { p.Release(now, item.Lease) })
}

// releaseOne is Release for a single item.
func (b *memoryBound) releaseOne(item *Item) error {
	now := b.m.now()
	p := b.keys.Place(item.Rule, item.Key)
	p.LockShard()
	defer p.UnlockShard()
	if !p.Open() {
		return errMemoryClosed
	}
	p.Release(now, item.Lease)
	return nil
}

// Renew implements [Leaser].
func (b *memoryBound) Renew(_ context.Context, batch *Batch) error {
	now := b.m.now()
	k := b.places(batch.Items)
	defer k.Unlock()
	if !k.Lock() {
		return errMemoryClosed
	}
	for i := range batch.Items {
		p, item := k.At(i), &batch.Items[i]
		p.Find() // the item before may have moved the slots
		p.Renew(k, now, item.Lease, item.Cost)
	}
	return nil
}
