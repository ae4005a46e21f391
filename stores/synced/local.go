package synced

import (
	"cmp"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// place is one limit of an item, with its counter.
type place struct {
	limit *limit
	item  *core.Item
	index int // among the item's results
	id    uint64
	entry *entry // in the table, or a new one
}

// places appends the places of the items.
func (c *counters) places(places []place, items []core.Item) []place {
	for i := range items {
		it := &items[i]
		limits := c.rules[it.Rule].limits
		for j := range limits {
			places = append(places, place{limit: &limits[j], item: it, index: j, id: c.table.id(limits[j].number, it.Key)})
		}
	}
	return places
}

// newEntry returns a counter of the window of now for a place.
func (c *counters) newEntry(p *place, now int64) *entry {
	key := c.rules[p.item.Rule].StoredKey(c.limiter, p.item.Key) + p.limit.suffix
	return &entry{id: p.id, start: p.limit.windows.Start(now), key: key, window: p.limit.windows.Window()}
}

// local does an operation with the counters of this process.
func (c *counters) local(b *core.Batch) error {
	now := c.now()
	var room [2]place
	places := c.places(room[:0], b.Items)
	if err := c.lock(places, now, b.Op != core.OpPeek); err != nil {
		return err
	}
	defer c.unlock(places)
	if b.Op == core.OpRefund {
		for i := range places {
			if s := places[i].entry.at(places[i].charged()); s != nil {
				s.diff -= min(places[i].item.Cost, s.count())
			}
		}
		return nil
	}
	b.Degraded = c.failing.Load()
	b.Allowed = decide(b.Op, places, now)
	return nil
}

// lock locks the shards of the places, in ascending order, so that no two operations wait
// for each other, and finds the counters. They take part in the next exchanges, because the
// hits of other processes matter to their keys. A key that is only read gets a counter if
// there is room: reading evicts none.
func (c *counters) lock(places []place, now int64, charge bool) error {
	if len(places) > 1 {
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id%shardCount, b.id%shardCount) })
	}
	for i := range places {
		if i == 0 || places[i].id%shardCount != places[i-1].id%shardCount {
			c.table.shard(places[i].id).mu.Lock()
		}
	}
	if c.closed.Load() { // checked under the locks, so that Close collects every charge
		c.unlock(places)
		return errClosed
	}
	for i := range places {
		p := &places[i]
		s := c.table.shard(p.id)
		if p.entry = s.entries[p.id]; p.entry == nil {
			p.entry = c.newEntry(p, now)
			if !charge && len(s.entries) >= c.table.most {
				continue
			}
			c.stats.lost.Add(uint64(c.table.insert(s, p.entry, now, places))) //nolint:gosec // not negative
		}
		if now < p.entry.start || now >= p.entry.start+p.limit.windows.Window() {
			p.entry.roll(p.limit.windows.Start(now))
		}
		if c.config.Interval > 0 && s.mark(p.entry) {
			c.fetched.fill(p.entry)
		}
	}
	return nil
}

func (c *counters) unlock(places []place) {
	for i := range places {
		if i == 0 || places[i].id%shardCount != places[i-1].id%shardCount {
			c.table.shard(places[i].id).mu.Unlock()
		}
	}
}

// charged returns the beginning of the window in which the item's hits were charged.
func (p *place) charged() int64 { return p.limit.windows.Start(p.item.At) }

// decide does OpTake, OpPeek or OpCharge, and reports whether it is allowed.
func decide(op core.Op, places []place, now int64) bool {
	first, allowed := op, true
	if op == core.OpTake && len(places) > 1 { // all are charged, or none
		first = core.OpPeek
	}
	for i := range places {
		places[i].item.At = now
		allowed = places[i].judge(first, now) && allowed
	}
	if !allowed || op == core.OpPeek {
		return allowed
	}
	for i := range places {
		p := &places[i]
		if first != op {
			p.judge(op, now)
		}
		s := &p.entry.current
		s.diff += min(p.item.Cost, max(0, core.MaxQuota-s.count()))
	}
	return true
}

// judge fills in the limit's result, as it is after the charge if there is one: the caller
// charges. It reports whether the limit allows the operation.
func (p *place) judge(op core.Op, now int64) bool {
	current, previous, start := p.entry.current.count(), p.entry.previous.count(), p.entry.start
	r := (*meter.Result)(&p.item.Results[p.index])
	w, cost := &p.limit.windows, p.item.Cost
	if p.item.Quotas != nil {
		switch quota := p.item.Quotas[p.index]; {
		case quota == core.Unlimited && op == core.OpPeek:
			cost = 0 // is always allowed
		case quota == core.Unlimited:
			op = core.OpCharge
		default:
			own := w.With(quota)
			w = &own
		}
	}
	if op == core.OpCharge {
		w.Charge(r, start, now, current, previous, cost)
	} else {
		w.Take(r, start, now, current, previous, cost, op == core.OpPeek)
	}
	return r.Allowed
}
