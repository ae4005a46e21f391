package core

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
)

var errMemoryClosed = fmt.Errorf("in-process counters: %w", ErrClosed)

// Take implements [Bound]. It waits for nothing but other callers.
//
// It reads the clock before it locks anything, because the clock may be the
// user's code. So a take may find a state that was charged at a later time; the
// limits then decide at that time.
func (b *memoryBound) Take(_ context.Context, batch *Batch) error {
	if len(batch.Items) == 1 {
		return b.takeOne(batch)
	}
	now := b.m.now()
	k := b.places(batch.Items)
	defer k.Unlock()
	if !k.Lock() {
		return errMemoryClosed
	}
	batch.Allowed = true
	for i := range batch.Items {
		p, item := k.At(i), &batch.Items[i]
		item.At = now
		p.Find()
		if !judge(p, item, now) {
			batch.Allowed = false
		}
	}
	moved := false // a key has been inserted, and slots have moved
	for i := range batch.Items {
		p, item := k.At(i), &batch.Items[i]
		if moved {
			p.Find()
		}
		if batch.Allowed && !batch.Peek && item.Cost > 0 {
			moved = p.Insert(k, now) || moved
			charge(p, item, now, true)
		} else {
			report(p, item, now)
		}
	}
	return nil
}

// takeOne is Take for a single item.
func (b *memoryBound) takeOne(batch *Batch) error {
	item := &batch.Items[0]
	p := b.keys.Place(item.Rule, item.Key)
	now := b.m.now()
	p.LockShard()
	defer p.UnlockShard()
	if !p.Open() {
		return errMemoryClosed
	}
	if quota := item.quota(0); quota != Unlimited && p.Single() {
		r := &item.Results[0]
		item.At = p.TakeSingle(quota, now, item.Cost, batch.Peek, r.meter())
		batch.Allowed = r.Allowed
		return nil
	}
	item.At = now
	batch.Allowed = judge(&p, item, now)
	if batch.Allowed && !batch.Peek && item.Cost > 0 {
		p.Insert(nil, now)
		charge(&p, item, now, true)
	} else {
		report(&p, item, now)
	}
	return nil
}

// places returns the places of the items, which are not locked yet.
func (b *memoryBound) places(items []Item) *memtable.Places {
	k := b.keys.Places()
	for i := range items {
		k.Add(items[i].Rule, items[i].Key)
	}
	return k
}

// judge returns whether all limits admit the item's cost, and sets Allowed of
// each result.
func judge(p *memtable.Place, item *Item, now int64) bool {
	allowed := true
	for i := range p.Limits() {
		ok, at := p.Judge(i, item.quota(i), now, item.Cost)
		item.At = max(item.At, at)
		item.Results[i].Allowed = ok
		allowed = allowed && ok
	}
	if item.Cost > 0 && p.BlockedUntil(now) > now {
		return false
	}
	return allowed
}

// charge charges the item's cost to every limit and reports what is left. If lease is
// true, it adds the item's lease, if it has one, to a limit of leases.
func charge(p *memtable.Place, item *Item, now int64, lease bool) {
	for i := range p.Limits() {
		if lease && item.Lease != 0 && p.Leases(i) {
			p.Lease(i, item.quota(i), now, item.Lease, item.Cost, item.Results[i].meter())
			continue
		}
		p.Charge(i, item.quota(i), now, item.Cost, item.Results[i].meter())
	}
}

// report fills in the results of an item that has been judged and not charged.
func report(p *memtable.Place, item *Item, now int64) {
	for i := range p.Limits() {
		p.Report(i, item.quota(i), now, item.Cost, item.Results[i].meter())
	}
	if until := p.BlockedUntil(now); until > now {
		item.block(time.Duration(until-now) * time.Microsecond)
	}
}

// block changes the results to those of a key that is denied for this time.
func (it *Item) block(wait time.Duration) {
	for i := range it.Results {
		r := &it.Results[i]
		r.Remaining, r.ResetAfter, r.MoreAfter = 0, max(r.ResetAfter, wait), max(r.MoreAfter, wait)
		if it.Cost > 0 {
			r.Allowed, r.RetryAfter = false, max(r.RetryAfter, wait)
		}
	}
}

// Block implements [Blocker].
func (b *memoryBound) Block(_ context.Context, batch *Batch, d time.Duration) error {
	return b.each(batch, func(p *memtable.Place, _ *Item, now int64) { p.Block(now+d.Microseconds(), now) })
}

// ResetAll implements [ResetterOfAll].
func (b *memoryBound) ResetAll(context.Context) error {
	if b.keys.ResetAll() != nil {
		return errMemoryClosed
	}
	return nil
}

// Charge implements [Bound].
func (b *memoryBound) Charge(_ context.Context, batch *Batch) error {
	now := b.m.now()
	k := b.places(batch.Items)
	defer k.Unlock()
	if !k.Lock() {
		return errMemoryClosed
	}
	batch.Allowed = true
	for i := range batch.Items {
		p, item := k.At(i), &batch.Items[i]
		item.At = now
		p.Find() // the item before may have moved the slots
		if item.Cost > 0 {
			p.Insert(k, now)
		}
		judge(p, item, now)
		charge(p, item, now, false)
	}
	return nil
}

// Refund implements [Bound].
func (b *memoryBound) Refund(_ context.Context, batch *Batch) error {
	return b.each(batch, func(p *memtable.Place, item *Item, now int64) {
		if !p.Known() {
			return
		}
		for i := range p.Limits() {
			p.Refund(i, item.quota(i), now, item.At, int64(item.Results[i].ResetAfter/time.Microsecond), item.Cost)
		}
		p.Refunded(now)
	})
}

// Grant implements [Granter].
func (b *memoryBound) Grant(_ context.Context, batch *Batch) error {
	batch.Allowed = true
	return b.each(batch, func(p *memtable.Place, item *Item, now int64) {
		if p.Known() {
			for i := range p.Limits() {
				p.Grant(i, item.quota(i), now, item.Cost)
			}
			p.Refunded(now)
		}
		look := *item // the results are its own
		look.Cost, look.At = 0, now
		judge(p, &look, now)
		report(p, &look, now)
		item.At = look.At
	})
}

// Reset implements [Bound].
func (b *memoryBound) Reset(_ context.Context, batch *Batch) error {
	return b.each(batch, func(p *memtable.Place, _ *Item, now int64) {
		p.Remove()
		p.Block(0, now)
	})
}

func (b *memoryBound) each(batch *Batch, f func(p *memtable.Place, item *Item, now int64)) error {
	now := b.m.now()
	k := b.places(batch.Items)
	defer k.Unlock()
	if !k.Lock() {
		return errMemoryClosed
	}
	for i := range batch.Items {
		k.At(i).Find()
		f(k.At(i), &batch.Items[i], now)
	}
	return nil
}
