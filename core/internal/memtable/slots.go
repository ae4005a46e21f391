package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// Slots gives and takes back the slots of keys that are in the table, of a rule whose
// only limit counts leases. Place and its methods do the same for all keys. Its methods
// may be called concurrently.
type Slots struct {
	ts     *Tables
	layout *layout
}

// Slots returns nil if the rule has another limit.
func (b *Binding) Slots(rule int) *Slots {
	l := b.layouts[rule]
	if len(l.meters) != 1 || l.leases != 0 {
		return nil
	}
	return &Slots{b.ts, l}
}

// Take adds a lease with one slot for the key that is text and a zero byte, if there is
// room, counts the decision and fills in r. done is false if it cannot: the key is not in the
// table, or some key is blocked.
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
		return false
	}
	m, slot := &k.layout.meters[0], t.slot(i)
	w := t.state(slot, 0)
	m.Advance(w, now)
	if r.Allowed = m.Admits(w, now, 1); r.Allowed {
		w = t.room(slot, 0, m, 1)
		m.Lease(w, now, lease, 1)
		t.noteHeld(i, now)
	} else {
		t.deny(i)
	}
	m.Report(r, w, now, 1, r.Allowed)
	t.counted.add(r.Allowed)
	return true
}

// Release ends a lease, which began at the time at, of the key that is text and a zero byte. done is
// false if the key is not in the table. Leases that have lapsed meanwhile are left to the next Take.
func (k *Slots) Release(text string, at int64, lease uint64) (done bool) {
	hash := k.ts.hash.text(text)
	s := &k.ts.shards[hash.place&k.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t, i := s.findIn(k.layout, hash)
	if t == nil {
		return false
	}
	k.layout.meters[0].Release(t.state(t.slot(i), 0), lease)
	t.noteHeld(i, at)
	return true
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
