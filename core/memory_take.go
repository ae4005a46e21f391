package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Take implements [Bound]. It waits for nothing but other callers.
//
// It reads the clock before it locks anything, because the clock may be
// somebody else's code. So a take may find a state that a later time has
// charged; the meters then decide at that time.
func (b *memoryBound) Take(_ context.Context, batch *Batch) error {
	if len(batch.Items) == 1 {
		return b.takeOne(batch)
	}
	now := b.m.now()
	k, err := b.lock(batch.Items)
	if err != nil {
		return err
	}
	defer b.unlock(k)
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
			moved = b.charge(p, item, k, now) || moved
		} else {
			p.report(item, now)
		}
	}
	return nil
}

// takeOne is Take for a single item.
func (b *memoryBound) takeOne(batch *Batch) error {
	item := &batch.Items[0]
	p := b.place(item)
	s := &b.m.shards[p.shard]
	now := b.m.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.m.closed.Load() {
		return errMemoryClosed
	}
	p.table = s.tableFor(p.layout)
	p.find()
	if p.slot != nil && p.layout.single && p.table.layout == p.layout {
		r := &item.Results[0]
		item.At = p.table.takeSingle(p.at, now, item.Cost, batch.Peek, r)
		batch.Allowed = r.Allowed
		return nil
	}
	item.At = now
	batch.Allowed = p.judge(item, now)
	if batch.Allowed && !batch.Peek && item.Cost > 0 {
		b.charge(&p, item, nil, now)
	} else {
		p.report(item, now)
	}
	return nil
}

var errMemoryClosed = fmt.Errorf("in-process counters: %w", ErrClosed)

func (b *memoryBound) place(item *Item) place {
	h := b.m.hash.sum(item.Key)
	return place{hash: h, shard: h.b & b.m.mask, layout: b.layouts[item.Rule]}
}

// charge charges an item of a batch, and returns true if slots have moved.
func (b *memoryBound) charge(p *place, item *Item, batch *places, now int64) (moved bool) {
	if p.slot == nil && p.table != nil {
		b.m.insert(p, batch, now)
		moved = true
	}
	p.charge(item, now)
	return moved
}

// places is the working memory of an operation over several items.
type places struct {
	places []place
	shards []uint64 // of the items, ascending, each once
	locked int      // how many of the shards are locked
}

var placesPool = sync.Pool{New: func() any { return new(places) }}

// holds returns whether a slot of the table is that of a key of the batch. A
// batch does not evict its own keys.
func (k *places) holds(t *memoryTable, i int) bool {
	if k == nil {
		return false
	}
	slot := t.slot(i)
	for j := range k.places {
		if p := &k.places[j]; p.table == t && p.hash.a == slot[0] && p.hash.b == slot[1] {
			return true
		}
	}
	return false
}

// lock finds the items' places and locks their shards, always in the same
// order, so that no two operations wait for each other.
func (b *memoryBound) lock(items []Item) (_ *places, err error) {
	k := placesPool.Get().(*places)
	k.places, k.shards, k.locked = k.places[:0], k.shards[:0], 0
	for i := range items {
		p := b.place(&items[i])
		k.places = append(k.places, p)
		k.shards = append(k.shards, p.shard)
	}
	slices.Sort(k.shards)
	k.shards = slices.Compact(k.shards)
	done := false
	defer func() {
		if !done {
			b.unlock(k)
		}
	}()
	for _, s := range k.shards {
		b.m.shards[s].mu.Lock()
		k.locked++
	}
	if b.m.closed.Load() {
		return nil, errMemoryClosed
	}
	for i := range k.places {
		p := &k.places[i]
		p.table = b.m.shards[p.shard].tableFor(p.layout)
	}
	done = true
	return k, nil
}

func (b *memoryBound) unlock(k *places) {
	for _, s := range k.shards[:k.locked] {
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
			p.table.remove(p.at)
			p.table.shrink()
			b.m.hold(p.table.layout.rule, -1)
			b.m.keys.Add(-1)
		}
	})
}

func (b *memoryBound) each(batch *Batch, f func(p *place, item *Item, now int64)) error {
	now := b.m.now()
	k, err := b.lock(batch.Items)
	if err != nil {
		return err
	}
	defer b.unlock(k)
	for i := range batch.Items {
		k.places[i].find()
		f(&k.places[i], &batch.Items[i], now)
	}
	return nil
}
