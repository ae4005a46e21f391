package synced

import (
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// judge fills in the limit's result for the item's cost, if this is not a peek
// after the charge. The caller charges.
func (p *place) judge(now int64, peek bool) *core.Result {
	return p.judgeCounts(now, p.counts(), peek)
}

// counts returns the hits of the place's counter.
func (p *place) counts() counts {
	if p.entry == nil {
		return counts{}
	}
	return counts{p.entry.current.count(), p.entry.previous.count()}
}

// judgeCounts is judge for a place with these counts. A clock that was set back
// may say that now is before the place's window.
func (p *place) judgeCounts(now int64, n counts, peek bool) *core.Result {
	var room meter.Windows
	w, unlimited := p.windows(&room)
	cost := p.item.Cost
	if unlimited {
		if !peek {
			return p.judgeCharge(now, n)
		}
		cost = 0 // is always admitted
	}
	r := &p.item.Results[p.index]
	w.Take((*meter.Result)(r), p.start, max(now, p.start), n.current, n.previous, cost, peek)
	return r
}

// take decides on a batch, and charges it unless this is a peek.
func (b *bound) take(batch *core.Batch) error {
	batch.Degraded = b.reports.either.Load()
	now := b.now()
	if len(batch.Items) == 1 && b.takeKnown(batch, now) {
		return nil
	}
	k := b.lock(batch.Items, now)
	if k == nil {
		return b.errClosed()
	}
	b.join(k, now, batch.Op == core.OpTake)
	batch.Allowed = true
	for i := range k.places {
		p := &k.places[i]
		p.item.At = now
		batch.Allowed = p.judge(now, true).Allowed && batch.Allowed
	}
	force := false
	if batch.Allowed && batch.Op == core.OpTake {
		for i := range k.places {
			p := &k.places[i]
			if p.item.Cost == 0 {
				continue
			}
			left := p.item.Results[p.index].Remaining
			r := p.judge(now, false)
			b.charge(k, p, now, p.hits(p.counts().current))
			force = force || p.nearly(left, r)
		}
	}
	b.unlock(k)
	if force {
		b.force()
	}
	return nil
}

// takeKnown is Take for a batch of one item whose rule has one limit, if the key
// has been counted in the window of now. It reports whether it has decided:
// otherwise it has changed nothing.
func (b *bound) takeKnown(batch *core.Batch, now int64) bool {
	item := &batch.Items[0]
	limits := b.rules[item.Rule].limits
	if len(limits) != 1 {
		return false
	}
	l := &limits[0]
	id := b.table.ident(l.number, item.Key)
	s := &b.table.shards[id.shard()]
	s.mu.Lock()
	f := s.entries.find(id)
	if f == nil || f.rounds == 0 && b.config.Interval > 0 || b.closed.Load() {
		s.mu.Unlock()
		return false
	}
	if !f.known {
		f.learn()
	}
	if now < f.start || now-f.start >= l.windows.Window() {
		s.mu.Unlock()
		return false
	}
	p := place{limit: l, item: item, start: f.start}
	r := p.judgeCounts(now, f.count, batch.Op == core.OpPeek)
	item.At, batch.Allowed = now, r.Allowed
	force := false
	if r.Allowed && batch.Op == core.OpTake {
		f.charge(p.hits(f.count.current))
		force = item.Cost > 0 && p.nearly(1, r)
	}
	if b.config.Interval > 0 {
		f.rounds = markedFor
	}
	s.mu.Unlock()
	if force {
		b.force()
	}
	return true
}

// nearly reports whether so much of the quota has been used that the next
// exchange is not to wait for the interval. left hits were left before the charge:
// if there were none, the other processes know that already.
func (p *place) nearly(left int64, r *core.Result) bool {
	quota := p.quota()
	return p.limit.near > 0 && quota != core.Unlimited && left > 0 && quota-r.Remaining >= max(1, quota*p.limit.near/100)
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
			if !b.fetcher.counts.tell(e) && !charge && s.entries.used >= b.table.most {
				continue
			}
			p.entry = e
			b.table.insert(s, p.id, e, now, k.places)
		}
		s.use(p.entry)
	}
}

// use makes a place with an entry take part in the next exchanges, if there are
// any.
func (b *bound) use(p *place) {
	if b.config.Interval > 0 {
		b.table.shards[p.id.shard()].use(p.entry)
	}
}

func (b *bound) newEntry(p *place) *entry {
	name := core.StoreRule{Name: b.rules[p.item.Rule].name}.StoredKey(b.limiter, p.item.Key)
	return &entry{names: name + p.limit.suffix + backSuffix, window: p.limit.windows.Window(), start: p.start, fresh: true}
}

// charge adds hits to the place's counter.
func (b *bound) charge(k *places, p *place, now, hits int64) {
	if p.entry == nil {
		p.entry = b.newEntry(p)
		b.table.insert(&b.table.shards[p.id.shard()], p.id, p.entry, now, k.places)
	}
	p.entry.current.added.diff += hits
}

// refund gives back what an earlier take or charge has charged.
func (b *bound) refund(batch *core.Batch) error {
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
			b.use(p)
		}
	}
	b.unlock(k)
	return nil
}
