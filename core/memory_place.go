package core

import (
	"slices"
	"time"
)

// place is where an item's key belongs, and its slot while the shard is locked.
type place struct {
	hash   hash128
	shard  uint64
	table  *memoryTable // nil: the limiter has no such rule any more
	layout *memoryLayout
	at     int      // the number of the slot
	slot   []uint64 // nil: the key is not in the table
	none   [mostFixedWords]uint64
}

// find looks the key up. Every insertion and removal moves slots: find must be
// called again after it.
func (p *place) find() {
	p.slot = nil
	if p.table == nil {
		return
	}
	if i, found := p.table.find(p.hash); found {
		p.at, p.slot = i, p.table.slot(i)
	}
}

// limit returns which limit of the table is the i-th of the layout. The two
// differ, and the result may be -1 for none, if the table has a newer layout.
func (p *place) limit(i int) int {
	if p.table.layout.version == p.layout.version {
		return i
	}
	return slices.Index(p.table.layout.ids, p.layout.ids[i])
}

// state returns the state of the layout's i-th limit, or the state of a key
// never seen if there is none.
func (p *place) state(i int) []uint64 {
	if p.slot != nil {
		if j := p.limit(i); j >= 0 {
			return p.table.state(p.slot, j)
		}
	}
	return p.absent(i)
}

func (p *place) absent(i int) []uint64 {
	if p.layout.meters[i].grows() {
		return nil
	}
	clear(p.none[:])
	return p.none[:]
}

// judge returns whether all limits admit the item's cost, and sets Allowed of
// each result.
func (p *place) judge(item *Item, now int64) bool {
	allowed := true
	for i := range p.layout.meters {
		m := &p.layout.meters[i]
		w := p.state(i)
		m.advance(w, now)
		item.At = max(item.At, m.at(w, now))
		ok := m.admits(w, now, item.Cost)
		item.Results[i].Allowed = ok
		allowed = allowed && ok
	}
	return allowed
}

// charge charges the item's cost to every limit and reports what is left.
func (p *place) charge(item *Item, now int64) {
	for i := range p.layout.meters {
		m := &p.layout.meters[i]
		w := p.room(i, item.Cost)
		m.charge(w, now, item.Cost)
		report(&item.Results[i], m, w, now, item.Cost, true)
		p.note(i, &item.Results[i], now)
	}
}

// note tells the table whether a limit has a hit left.
func (p *place) note(i int, r *Result, now int64) {
	if p.slot == nil {
		return
	}
	until := int64(0)
	if r.Remaining == 0 {
		p.table.deny(p.at)
		until = now + int64(r.MoreAfter/time.Microsecond)
	}
	if p.table.layout == p.layout {
		p.table.noteDenied(p.slot, i, until)
	}
}

// room is state with room for a charge.
func (p *place) room(i int, cost int64) []uint64 {
	if p.slot != nil {
		if j := p.limit(i); j >= 0 {
			return p.table.room(p.slot, j, cost)
		}
	}
	if m := &p.layout.meters[i]; m.grows() {
		return make([]uint64, m.words(nil, cost))
	}
	return p.absent(i)
}

// report fills in the results of an item that has not been charged.
func (p *place) report(item *Item, now int64) {
	for i := range p.layout.meters {
		r := &item.Results[i]
		report(r, &p.layout.meters[i], p.state(i), now, item.Cost, r.Allowed)
		p.note(i, r, now)
	}
}

func micros(n int64) time.Duration {
	if n == never {
		return Never
	}
	return time.Duration(n) * time.Microsecond
}

// refund gives the item's charge back.
func (p *place) refund(item *Item, now int64) {
	for i := range p.layout.meters {
		m := &p.layout.meters[i]
		w := p.state(i)
		m.advance(w, now)
		m.refund(w, now, item.At, int64(item.Results[i].ResetAfter/time.Microsecond), item.Cost)
	}
	if p.slot != nil {
		p.table.forgetDenied(p.slot)
		p.table.reopen(p.at, now)
	}
}
