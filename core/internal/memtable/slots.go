package memtable

import (
	"slices"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Slots gives and takes back the slots of the keys of a rule whose only limit counts
// leases. Place and its methods do the same for all rules. Its methods may be called
// concurrently.
//
// The leases that it gives are numbers below HeldLease. A lease that has been held is found
// under its number with HeldLease added.
type Slots struct {
	ts     *Tables
	layout *layout
}

// HeldLease is added to the number of a lease that Hold has held.
const HeldLease = 1 << 63

// Slots returns nil if the rule has another limit.
func (b *Binding) Slots(rule int) *Slots {
	l := b.layouts[rule]
	if len(l.meters) != 1 || l.leases != 0 {
		return nil
	}
	return &Slots{b.ts, l}
}

// Take adds a lease with one slot for the key that is text and a zero byte, if there is
// room, counts the decision and fills in r. done is false if it cannot decide: some key is
// blocked, the table has another layout, or there is no room for the key.
func (k *Slots) Take(text string, now int64, lease uint64, r *meter.Result) (done bool) {
	if k.ts.blocked.n.Load() > 0 {
		return false
	}
	hash := k.ts.hash.text(text)
	s := &k.ts.shards[hash.place&k.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i := s.findIn(k.layout, hash)
	if t == nil {
		if t, i = k.insert(hash, now); t == nil {
			return false
		}
	}
	m, slot := &k.layout.meters[0], t.slot(i)
	w := t.state(slot, 0)
	m.Advance(w, now)
	left, ok, full := m.TakeSlot(w, now, lease)
	if full {
		w = t.room(slot, 0, m, 1)
		left, ok, _ = m.TakeSlot(w, now, lease)
	}
	if r.Allowed, r.Remaining = ok, left; ok {
		end := &slot[t.layout.offset(0)+1]
		*end = uint64(max(int64(*end), now+m.Window()))
	} else {
		m.Report(r, w, now, 1, false)
	}
	t.deny(i)
	t.counted.add(ok)
	return true
}

// insert makes a slot for a key of the locked shard, if a lease of it would be admitted. It
// returns nil if it has made none.
func (k *Slots) insert(hash keyHash, now int64) (t *table, i int) {
	if k.ts.closed.Load() || k.layout.meters[0].Quota() == 0 {
		return nil, 0
	}
	p := Place{ts: k.ts, hash: hash, shard: hash.place & k.ts.mask, layout: k.layout}
	p.table = k.ts.shards[p.shard].tableFor(k.layout)
	if p.table == nil || p.table.layout != k.layout {
		return nil, 0
	}
	if p.Find(); p.slot != nil { // tableFor has brought the table to this layout
		return p.table, p.at
	}
	if !k.ts.insert(&p, nil, now) {
		return nil, 0
	}
	return p.table, p.at
}

// Release ends a lease of the key that is text and a zero byte, and returns whether the key
// had it. If held is true, it ends the lease also if that has been held.
func (k *Slots) Release(text string, lease uint64, held bool) bool {
	hash := k.ts.hash.text(text)
	s := &k.ts.shards[hash.place&k.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i, limit := s.leasesOf(k.layout, hash)
	if t == nil {
		return false
	}
	m, w := &t.layout.meters[limit], t.state(t.slot(i), limit)
	if !m.Release(w, lease) && !(held && m.Release(w, lease|HeldLease)) {
		return false
	}
	if !m.HasLeases(w) {
		t.noteIdle(i)
	}
	return true
}

// Hold holds a lease of the key that is text and a zero byte: a Release with held false does not
// end it any more. It returns false if the key does not have the lease. It may be called again.
func (k *Slots) Hold(text string, lease uint64) bool {
	hash := k.ts.hash.text(text)
	s := &k.ts.shards[hash.place&k.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i, limit := s.leasesOf(k.layout, hash)
	if t == nil {
		return false
	}
	m, w := &t.layout.meters[limit], t.state(t.slot(i), limit)
	return m.Rename(w, lease, lease|HeldLease) || m.Rename(w, lease|HeldLease, lease|HeldLease)
}

// leasesOf returns the slot of a key in the locked shard, and which of its limits is that of a
// layout of Slots; nil if there is none. The table may have another layout of the rule.
func (s *shard) leasesOf(l *layout, hash keyHash) (t *table, i, limit int) {
	t = s.table(l.rule.id) // nil once the tables are closed
	if t == nil || t.layout.rule != l.rule {
		return nil, 0, 0
	}
	if t.layout != l {
		if limit = slices.Index(t.layout.ids, l.ids[0]); limit < 0 {
			return nil, 0, 0
		}
	}
	i, found := t.find(hash)
	if !found {
		return nil, 0, 0
	}
	return t, i, limit
}

// findIn returns the slot of a key in the locked shard's table of a layout, nil if the key
// is not there, or the table has another layout.
func (s *shard) findIn(l *layout, hash keyHash) (t *table, i int) {
	t = s.table(l.rule.id) // nil once the tables are closed
	if t == nil || t.layout != l {
		return nil, 0
	}
	i, found := t.find(hash)
	if !found {
		return nil, 0
	}
	return t, i
}
