package memtable

import (
	"cmp"
	"slices"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Place is where one key of a rule belongs, and its slot while its shard is locked. Limits of the
// rule are named by their index.
type Place struct {
	ts     *Tables
	layout *layout
	shard  *shard
	hash   keyHash
	table  *table   // nil: the limiter has no such rule any more
	slot   []uint64 // nil: the key is not in the table
	at     int      // the number of the slot
	locked bool     // Unlock unlocks the shard for this place
	plain  bool     // the states are in the slot, in the layout's order
}

// Locate makes p, which is zero, the place of a key. It is not locked yet, and not looked up.
func (b *Binding) Locate(p *Place, rule int, key []byte) {
	p.ts, p.layout = b.ts, b.layouts[rule]
	p.hash = b.ts.hash.sum(key)
	p.shard = &b.ts.shards[p.hash.place&b.ts.mask]
}

// Lock locks the shards of the places of one operation, always in the same order, so that no two
// operations wait for each other, and looks the keys up. ok is false if the tables are closed:
// nothing but Unlock may be called then.
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
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(places[i].number(), places[j].number()) })
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
			p.shard.mu.Unlock()
		}
	}
}

// number returns the number of the shard.
func (p *Place) number() uint64 { return p.hash.place & p.ts.mask }

func (p *Place) lock() {
	p.shard.mu.Lock()
	p.locked = true
}

// open looks the key up in the locked shard.
func (p *Place) open() (ok bool) {
	if p.ts.closed.Load() {
		return false
	}
	p.table = p.shard.tableFor(p.layout)
	p.Find()
	return true
}

// holds reports whether a slot of the table is that of one of the places. An operation does not
// evict its own keys.
func holds(places []Place, t *table, i int) bool {
	if len(places) < 2 {
		return false
	}
	slot := t.slot(i)
	return slices.ContainsFunc(places, func(p Place) bool { return p.table == t && p.hash == (keyHash{slot[0], slot[1]}) })
}

// Find looks the key up. Every insertion and removal of a key moves slots: Find must be called
// again after it.
func (p *Place) Find() {
	p.slot, p.plain = nil, false
	if p.table == nil {
		return
	}
	if i, found := p.table.find(p.hash); found {
		p.has(i)
	}
}

// has notes that the key is in a slot of the table.
func (p *Place) has(i int) {
	p.at, p.slot = i, p.table.slot(i)
	p.plain = p.layout.fixed && p.table.layout == p.layout
}

// Limit returns the meter of the layout's i-th limit for a decision with a quota (see
// meter.Meter.For), which is valid until the next call for a place of the shard, and the state:
// that of a key never seen if there is none.
func (p *Place) Limit(i int, quota int64) (m *meter.Meter, w []uint64) {
	if p.plain && quota == meter.Own {
		return &p.layout.meters[i], p.slot[p.layout.offsets[i]:]
	}
	return p.layout.meters[i].For(quota, &p.shard.scratch().own), p.state(i)
}

// column returns which limit of the table is the i-th of the layout. The two differ, and the result
// may be -1 for none, if the table has a newer layout.
func (p *Place) column(i int) int {
	if p.table.layout.version == p.layout.version {
		return i
	}
	return slices.Index(p.table.layout.ids, p.layout.ids[i])
}

func (p *Place) state(i int) []uint64 {
	if p.slot != nil {
		if j := p.column(i); j >= 0 {
			return p.table.state(p.slot, j)
		}
	}
	return p.absent(i)
}

func (p *Place) absent(i int) []uint64 {
	if p.layout.meters[i].Grows() {
		return nil
	}
	none := p.shard.scratch().none[:]
	clear(none)
	return none
}

// Known reports whether the key is in the table.
func (p *Place) Known() bool { return p.slot != nil }

// Limits returns the number of limits of the rule.
func (p *Place) Limits() int { return len(p.layout.meters) }

// Take decides on a cost for a key that is in the table, of a rule with one limit of fixed size,
// and charges it, unless it is denied or this is a peek. It does what Locate, Lock, Decide, Charge
// and Report do. Without it a decision takes a quarter more. done is false for any other key.
func (b *Binding) Take(rule int, key []byte, now, cost int64, peek bool, r *meter.Result) (at int64, done bool) {
	l := b.layouts[rule]
	if !l.fixed || len(l.meters) != 1 || b.ts.blocked.n.Load() > 0 {
		return 0, false
	}
	hash := b.ts.hash.sum(key)
	s := &b.ts.shards[hash.place&b.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(l.rule.id) // nil once the tables are closed
	if t == nil || t.layout != l {
		return 0, false
	}
	i, found := t.find(hash)
	if !found {
		return 0, false
	}
	m, w := &l.meters[0], t.slot(i)[slotHeader:]
	at, _ = m.Decide(r, w, now, cost)
	if r.Allowed && !peek {
		m.Charge(r, w, now, cost)
	}
	m.Report(r, w, now, cost)
	if r.Remaining == 0 {
		t.deny(i)
	}
	return at, true
}

// Report fills in the waits of r, on which Limit's meter has decided. If charge is true, it first
// charges cost, even if the limit denies it. If the key is not in the table, a temporary state is
// charged.
func (p *Place) Report(limit int, quota, now, cost int64, charge bool, r *meter.Result) {
	m, w := p.Limit(limit, quota)
	if charge {
		if !p.layout.fixed {
			w = p.room(limit, m, cost)
		}
		m.Charge(r, w, now, cost)
	}
	m.Report(r, w, now, cost)
	if r.Remaining == 0 && p.slot != nil {
		p.table.deny(p.at)
	}
}

// room is state with room for a charge.
func (p *Place) room(i int, m *meter.Meter, cost int64) []uint64 {
	if p.slot != nil {
		if j := p.column(i); j >= 0 {
			return p.table.room(p.slot, j, m, cost)
		}
	}
	return m.Room(p.absent(i), cost)
}

// Refund refunds cost hits to a limit. They were charged at the time at, and the result of that
// charge had reset as its ResetAfter. Refunded must follow.
func (p *Place) Refund(limit int, quota, now, at, reset, cost int64) {
	m, w := p.Limit(limit, quota)
	m.Refund(w, now, at, reset, cost)
}

// Grant gives back up to n hits of a limit, the newest first. Refunded must follow.
func (p *Place) Grant(limit int, quota, now, n int64) {
	m, w := p.Limit(limit, quota)
	m.Grant(w, now, n)
}

// Refunded notes that hits of the key have been refunded, which may have ended a denial.
func (p *Place) Refunded(now int64) {
	if p.slot != nil {
		p.table.reopen(p.at, now)
	}
}

// Remove forgets the key, if it is in the table.
func (p *Place) Remove() {
	if p.slot == nil {
		return
	}
	p.table.remove(p.at)
	p.table.shrink()
	p.ts.hold(p.table.layout.rule, -1)
	p.ts.keys.Add(-1)
}

// Insert gives the key a slot, if it has none and its rule is not gone. It returns true if slots
// have moved. The key gets no slot if only keys of the same operation, others, could make room.
func (p *Place) Insert(others []Place, now int64) (moved bool) {
	if p.slot != nil || p.table == nil {
		return false
	}
	p.ts.insert(p, others, now)
	return true
}
