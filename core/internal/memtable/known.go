package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// Mode is what TakeKnown does besides deciding.
type Mode uint8

// The modes, joined with |.
const (
	Charge Mode = 1 << iota // charge the cost if it is allowed
	Count                   // count the decision: see Counted
)

// TakeKnown decides on cost hits of the key that is text and a zero byte. done
// is false if it cannot: the key is not in the table, or its rule has several
// limits or one whose state is no cell, or some key is blocked. Place and its methods do the same for all
// keys. at is the time of the decision, and c is for the Tell of the meter that has decided: m, with a quota
// of its own, or if it is nil, the rule's Meter.
func (b *Binding) TakeKnown(rule int, m *meter.Meter, text string, now, cost int64, mode Mode) (c meter.Cell, at int64, allowed, done bool) {
	l := b.layouts[rule]
	if m == nil {
		m = &l.meters[0]
	}
	if !l.cells || !m.Cells() || b.ts.blocked.n.Load() > 0 {
		return c, 0, false, false
	}
	hash := b.ts.hash.text(text)
	s := &b.ts.shards[hash.place&b.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(l.rule.id) // nil once the tables are closed
	if t == nil || t.layout != l {
		return c, 0, false, false
	}
	i, found := t.find(hash)
	if !found {
		return c, 0, false, false
	}
	c, at, allowed, spent := m.Decide(t.slot(i)[slotHeader:], now, cost, mode&Charge != 0)
	if spent {
		t.deny(i)
	}
	if mode&Count != 0 {
		t.counted.add(allowed)
	}
	return c, at, allowed, true
}

// Meter returns the meter of a rule's first limit.
func (b *Binding) Meter(rule int) *meter.Meter { return &b.layouts[rule].meters[0] }

// counted is how many decisions of a rule or a limiter have been counted.
type counted struct{ allowed, denied uint64 }

func (c *counted) add(allowed bool) {
	if allowed {
		c.allowed++
	} else {
		c.denied++
	}
}

// Counted returns how many decisions TakeKnown has counted for the limiter. It
// locks one shard after the other.
func (b *Binding) Counted() (allowed, denied uint64) {
	b.ts.mu.Lock()
	defer b.ts.mu.Unlock()
	sum := *b.gone
	for i := range b.ts.shards {
		b.ts.shards[i].addCounted(b, &sum)
	}
	return sum.allowed, sum.denied
}

func (s *shard) addCounted(b *Binding, sum *counted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range b.layouts {
		if t := s.table(l.rule.id); t != nil && t.layout.rule == l.rule {
			sum.allowed += t.counted.allowed
			sum.denied += t.counted.denied
		}
	}
}

// Single reports whether TakeSingle may be called: the key is in the table, and
// its rule has one limit, whose state does not grow.
func (p *Place) Single() bool {
	return p.slot != nil && p.layout.single && p.table.layout == p.layout && p.ts.blocked.n.Load() == 0
}

// TakeSingle decides on cost hits with a quota (see meter.Meter.For) that is not
// unlimited, and charges them if they are admitted and this is not a peek. It
// returns the time of the decision.
func (p *Place) TakeSingle(quota, now, cost int64, peek bool, r *meter.Result) (at int64) {
	m := &p.layout.meters[0]
	if quota == meter.Own {
		return p.table.takeSingle(p.at, m, now, cost, peek, r)
	}
	var room meter.Meter
	m, _ = m.For(quota, &room)
	return p.table.takeSingle(p.at, m, now, cost, peek, r)
}

// takeSingle decides on the key of a slot of a table whose layout is single.
func (t *table) takeSingle(i int, m *meter.Meter, now, cost int64, peek bool, r *meter.Result) (at int64) {
	at = m.Take(t.slot(i)[slotHeader:], now, cost, peek, r)
	if r.Remaining == 0 {
		t.deny(i)
	}
	return at
}
