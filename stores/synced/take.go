package synced

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
)

// judge returns the limit's result for cost hits at the place. now is not
// before the place's window.
func (p *place) judge(now, cost int64) core.Result {
	var current, previous int64
	if p.entry != nil {
		current, previous = p.entry.current.count(), p.entry.previous.count()
	}
	return p.limit.judge(max(now, p.start), current, previous, cost)
}

// Take implements [core.Bound]. Unless Interval is 0, it waits only for other
// callers.
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	if b.config.Interval == 0 {
		return b.takeThrough(ctx, batch)
	}
	now := b.now()
	k := b.lock(batch.Items, now)
	if k == nil {
		return b.errClosed()
	}
	b.join(k, now, !batch.Peek)
	batch.Allowed = true
	for i := range k.places {
		p := &k.places[i]
		p.item.At = now
		r := p.judge(now, p.item.Cost)
		p.item.Results[p.index] = r
		batch.Allowed = batch.Allowed && r.Allowed
	}
	force := false
	if batch.Allowed && !batch.Peek {
		for i := range k.places {
			p := &k.places[i]
			if p.item.Cost == 0 {
				continue
			}
			b.charge(k, p, now)
			r := p.judge(now, 0)
			p.item.Results[p.index] = r
			force = force || p.limit.near > 0 && p.limit.quota-r.Remaining >= p.limit.near
		}
	}
	b.unlock(k)
	if force {
		b.force()
	}
	return nil
}

// join makes the places take part in the next exchanges, because the hits of
// other processes matter to their keys. A key that is only read gets an entry
// if there is room: reading evicts no counter.
func (b *bound) join(k *places, now int64, charge bool) {
	if b.config.Interval < 0 {
		return // there are none
	}
	for i := range k.places {
		p := &k.places[i]
		s := &b.table.shards[p.id.shard()]
		if p.entry == nil {
			e := b.newEntry(p)
			if !b.fetcher.counts.tell(e) && !charge && len(s.entries) >= b.table.most {
				continue
			}
			p.entry = e
			b.table.insert(s, p.id, e, now, k.places)
		}
		s.mark(p.id, p.entry)
	}
}

func (b *bound) newEntry(p *place) *entry {
	name := core.StoreRule{Name: b.rules[p.item.Rule].name}.StoredKey(b.limiter, p.item.Key)
	return &entry{names: name + p.limit.suffix + backSuffix, window: p.limit.windows.Window(), start: p.start, fresh: true}
}

// charge adds the item's cost to the place's counter.
func (b *bound) charge(k *places, p *place, now int64) {
	s := &b.table.shards[p.id.shard()]
	if p.entry == nil {
		p.entry = b.newEntry(p)
		b.table.insert(s, p.id, p.entry, now, k.places)
	}
	p.entry.current.added.diff += p.item.Cost
	s.mark(p.id, p.entry)
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	if b.config.Interval == 0 {
		return b.refundThrough(ctx, batch)
	}
	k := b.lock(batch.Items, b.now())
	if k == nil {
		return b.errClosed()
	}
	for i := range k.places {
		p := &k.places[i]
		if p.entry == nil {
			continue
		}
		if s := p.entry.at(p.limit.windows.Start(p.item.At)); s != nil {
			s.take(p.item.Cost)
			b.table.shards[p.id.shard()].mark(p.id, p.entry)
		}
	}
	b.unlock(k)
	return nil
}
