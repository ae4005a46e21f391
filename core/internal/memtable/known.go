package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// TakeKnown decides on cost hits of a key, and charges them if they are admitted
// and this is not a peek. done is false if this short way cannot do it: the key
// is not in the table, or its rule has several limits or one whose state grows.
// Place and its methods do the same for all keys. at is the time of the
// decision.
func (b *Binding) TakeKnown(rule int, key []byte, now, cost int64, peek bool, r *meter.Result) (at int64, done bool) {
	l := b.layouts[rule]
	h := b.ts.hash.sum(key)
	s := &b.ts.shards[h.b&b.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(l.rule.id) // nil once the tables are closed
	if t == nil || t.layout != l || !l.single {
		return 0, false
	}
	i, found := t.find(h)
	if !found {
		return 0, false
	}
	return t.takeSingle(i, now, cost, peek, r), true
}

// Single reports whether TakeSingle may be called: the key is in the table, and
// its rule has one limit, whose state does not grow.
func (p *Place) Single() bool {
	return p.slot != nil && p.layout.single && p.table.layout == p.layout
}

// TakeSingle decides on cost hits, and charges them if they are admitted and
// this is not a peek. It returns the time of the decision.
func (p *Place) TakeSingle(now, cost int64, peek bool, r *meter.Result) (at int64) {
	return p.table.takeSingle(p.at, now, cost, peek, r)
}

// takeSingle decides on the key of a slot of a table whose layout is single.
func (t *table) takeSingle(i int, now, cost int64, peek bool, r *meter.Result) (at int64) {
	at = t.layout.meters[0].Take(t.slot(i)[slotHeader:], now, cost, peek, r)
	if r.Remaining == 0 {
		t.deny(i)
	}
	return at
}
