package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Take implements [Bound]. It waits for nothing but other callers.
func (b *memoryBound) Take(_ context.Context, batch *Batch) error {
	if len(batch.Items) == 1 {
		return b.takeOne(batch)
	}
	k, err := b.lock(batch.Items)
	if err != nil {
		return err
	}
	now := b.m.now()
	batch.Allowed = true
	for i := range batch.Items {
		p, item := &k.places[i], &batch.Items[i]
		item.At = now
		p.find()
		if !p.judge(item, now) {
			batch.Allowed = false
		}
	}
	moved := false // a key has been inserted, and slots have moved
	for i := range batch.Items {
		p, item := &k.places[i], &batch.Items[i]
		if moved {
			p.find()
		}
		if batch.Allowed && !batch.Peek && item.Cost > 0 {
			moved = b.charge(p, item, now) || moved
		} else {
			p.report(item, now)
		}
	}
	b.unlock(k)
	return nil
}

// takeOne is Take for a single item.
func (b *memoryBound) takeOne(batch *Batch) error {
	item := &batch.Items[0]
	p := b.place(item)
	s := &b.m.shards[p.shard]
	s.mu.Lock()
	if b.m.closed.Load() {
		s.mu.Unlock()
		return errMemoryClosed
	}
	p.table = s.tableFor(p.layout)
	p.find()
	now := b.m.now()
	item.At = now
	batch.Allowed = p.judge(item, now)
	if batch.Allowed && !batch.Peek && item.Cost > 0 {
		b.charge(&p, item, now)
	} else {
		p.report(item, now)
	}
	s.mu.Unlock()
	return nil
}

var errMemoryClosed = fmt.Errorf("in-process counters: %w", ErrClosed)

func (b *memoryBound) place(item *Item) place {
	h := b.m.hash.sum(item.Key)
	return place{hash: h, shard: h.b & b.m.mask, layout: b.layouts[item.Rule]}
}

// charge charges an item, and says whether its key had to be inserted.
func (b *memoryBound) charge(p *place, item *Item, now int64) (inserted bool) {
	if p.slot == nil && p.table != nil {
		p.slot = b.m.insert(&b.m.shards[p.shard], p.table, p.hash, now)
		inserted = true
	}
	p.charge(item, now)
	return inserted
}

// places is the working memory of an operation over several items.
type places struct {
	places []place
	shards []uint64 // those concerned, ascending, each once
}

var placesPool = sync.Pool{New: func() any { return new(places) }}

// lock finds the items' places and locks their shards: always in the same
// order, so that no two operations wait for each other.
func (b *memoryBound) lock(items []Item) (*places, error) {
	k := placesPool.Get().(*places)
	k.places, k.shards = k.places[:0], k.shards[:0]
	for i := range items {
		p := b.place(&items[i])
		k.places = append(k.places, p)
		k.shards = append(k.shards, p.shard)
	}
	slices.Sort(k.shards)
	k.shards = slices.Compact(k.shards)
	for _, s := range k.shards {
		b.m.shards[s].mu.Lock()
	}
	if b.m.closed.Load() {
		b.unlock(k)
		return nil, errMemoryClosed
	}
	for i := range k.places {
		p := &k.places[i]
		p.table = b.m.shards[p.shard].tableFor(p.layout)
	}
	return k, nil
}

func (b *memoryBound) unlock(k *places) {
	for _, s := range k.shards {
		b.m.shards[s].mu.Unlock()
	}
	clear(k.places)
	placesPool.Put(k)
}

// Refund implements [Bound].
func (b *memoryBound) Refund(_ context.Context, batch *Batch) error {
	return b.each(batch, func(p *place, item *Item, now int64) {
		if p.slot != nil {
			p.refund(item, now)
		}
	})
}

// Reset implements [Bound].
func (b *memoryBound) Reset(_ context.Context, batch *Batch) error {
	return b.each(batch, func(p *place, _ *Item, _ int64) {
		if p.slot != nil {
			i, _ := p.table.find(p.hash)
			p.table.remove(i)
			b.m.keys.Add(-1)
		}
	})
}

func (b *memoryBound) each(batch *Batch, f func(p *place, item *Item, now int64)) error {
	k, err := b.lock(batch.Items)
	if err != nil {
		return err
	}
	now := b.m.now()
	for i := range batch.Items {
		k.places[i].find()
		f(&k.places[i], &batch.Items[i], now)
	}
	b.unlock(k)
	return nil
}
