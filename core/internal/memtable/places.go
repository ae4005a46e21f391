package memtable

import (
	"slices"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Lock locks the shards of the places of one operation, always in the same order, so that no
// two operations wait for each other, and looks the keys up. ok is false if the tables are
// closed: nothing but Unlock may be called then.
func Lock(places []Place) (ok bool) {
	if len(places) == 1 {
		places[0].lock()
		return places[0].open()
	}
	var room [8]int
	order := room[:0]
	for i := range places {
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int { return int(places[i].shard) - int(places[j].shard) })
	for n, i := range order {
		if n == 0 || places[i].shard != places[order[n-1]].shard {
			places[i].lock()
		}
	}
	for i := range places {
		if !places[i].open() {
			return false
		}
	}
	return true
}

// Unlock unlocks what Lock has locked.
func Unlock(places []Place) {
	for i := range places {
		if p := &places[i]; p.locked {
			p.ts.shards[p.shard].mu.Unlock()
		}
	}
}

func (p *Place) lock() {
	p.ts.shards[p.shard].mu.Lock()
	p.locked = true
}

// open looks the key up in the locked shard.
func (p *Place) open() (ok bool) {
	if p.ts.closed.Load() {
		return false
	}
	p.table = p.ts.shards[p.shard].tableFor(p.layout)
	p.Find()
	return true
}

// holds reports whether a slot of the table is that of one of the places. An operation does
// not evict its own keys.
func holds(places []Place, t *table, i int) bool {
	if len(places) < 2 {
		return false
	}
	slot := t.slot(i)
	return slices.ContainsFunc(places, func(p Place) bool { return p.table == t && p.hash == (keyHash{slot[0], slot[1]}) })
}

// Single reports whether TakeSingle may be called: the key is in the table, no key is
// blocked, and the key's rule has one limit, whose state does not grow.
func (p *Place) Single() bool {
	return p.slot != nil && p.layout.single && p.table.layout == p.layout && p.ts.blocked.n.Load() == 0
}

// TakeSingle decides on cost hits with a quota (see meter.Meter.For) that is not unlimited,
// and charges them if they are allowed and this is not a peek. It does what Judge, Charge
// and Report do, and loads and stores the state once. It returns the time of the decision.
func (p *Place) TakeSingle(quota, now, cost int64, peek bool, r *meter.Result) (at int64) {
	m := &p.layout.meters[0]
	if quota != meter.Own {
		var room meter.Meter
		m, _ = m.For(quota, &room)
	}
	at = m.Take(p.slot[slotHeader:], now, cost, peek, r)
	if r.Remaining == 0 {
		p.table.deny(p.at)
	}
	return at
}
