package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// A key that holds a lease is never evicted: what is under way would be forgotten,
// and its slot granted again. If nothing else can be evicted, a key is inserted
// above MaxKeys: each key that holds a lease belongs to an operation of the
// program that has not ended.
//
// When the last lease of a key ends is kept in its slot, beside the reference to
// the block of the leases, so that a search for a key to evict need not load it.

// holding reports whether the key of a slot holds a lease.
func (t *table) holding(slot []uint64, now int64) bool {
	i := t.layout.leases
	return i >= 0 && int64(slot[t.layout.offset(i)+1]) > now
}

// noteHeld notes when the last lease of a slot ends.
func (t *table) noteHeld(i int, now int64) {
	limit, slot := t.layout.leases, t.slot(i)
	if limit < 0 {
		return
	}
	end := t.layout.meters[limit].Expiry(t.state(slot, limit))
	slot[t.layout.offset(limit)+1] = uint64(end)
	if end > now {
		t.deny(i)
	} else {
		t.reopen(i, now)
	}
}

// hasLeases reports whether keys of the shard may hold leases.
func (s *shard) hasLeases() bool {
	for _, t := range s.tables {
		if t != nil && t.layout.leases >= 0 {
			return true
		}
	}
	return false
}

// Leases reports whether the layout's i-th limit counts leases.
func (p *Place) Leases(i int) bool { return p.layout.leases == i }

// Lease adds a lease with cost slots to a limit that has been judged, and fills in r.
func (p *Place) Lease(limit int, quota, now int64, lease uint64, cost int64, r *meter.Result) {
	m, _, _ := p.Limit(limit, quota)
	w := p.room(limit, m, cost)
	m.Lease(w, now, lease, cost)
	m.Report(r, w, now, cost, true)
	p.noteHeld(now)
}

// Release ends a lease of the key, if it has it.
func (p *Place) Release(now int64, lease uint64) {
	if p.slot == nil || p.layout.leases < 0 {
		return
	}
	m, w := &p.layout.meters[p.layout.leases], p.state(p.layout.leases)
	m.Advance(w, now)
	m.Release(w, lease)
	p.noteHeld(now)
}

// Renew makes a lease of the key end a window from now, and adds it, and the key,
// if they are not there. It returns true if slots have moved.
func (p *Place) Renew(others []Place, now int64, lease uint64, cost int64) (moved bool) {
	limit := p.layout.leases
	if limit < 0 || cost <= 0 {
		return false
	}
	moved = p.Insert(others, now)
	m := &p.layout.meters[limit]
	m.Advance(p.state(limit), now)
	m.Renew(p.room(limit, m, cost), now, lease, cost)
	p.noteHeld(now)
	return moved
}

func (p *Place) noteHeld(now int64) {
	if p.slot != nil {
		p.table.noteHeld(p.at, now)
	}
}
