package memtable

import "github.com/floodgate-go/floodgate/internal/meter"

// Mode is what Known.Take does besides deciding.
type Mode uint8

// The modes, joined with |.
const (
	Charge Mode = 1 << iota // charge the cost if it is allowed
	Count                   // count the decision: see Counted
)

// Known decides on the keys of a rule with one limit whose state is a cell, if they
// are in the table. Place and its methods do the same for all keys. Its methods may be
// called concurrently.
type Known struct {
	ts     *Tables
	layout *layout
	id     int // of the rule
	meter  meter.Meter
}

// Known returns nil if the rule has several limits, or one whose state is no cell.
func (b *Binding) Known(rule int) *Known {
	l := b.layouts[rule]
	if !l.cells {
		return nil
	}
	return &Known{b.ts, l, l.rule.id, l.meters[0]}
}

// Meter returns the meter of the rule's limit.
func (k *Known) Meter() *meter.Meter { return &k.meter }

// Take decides on cost hits of the key that is text and a zero byte. done
// is false if it cannot: the key is not in the table, or some key is blocked. m is the
// rule's Meter, or one with a quota of its own. at is the time of the decision, and c is for the Tell of m.
func (k *Known) Take(m *meter.Meter, text string, now, cost int64, mode Mode) (c meter.Cell, at int64, allowed, done bool) {
	if !m.Cells() || k.ts.blocked.n.Load() > 0 {
		return c, 0, false, false
	}
	hash := k.ts.hash.text(text)
	s := &k.ts.shards[hash.place&k.ts.mask]
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(k.id) // nil once the tables are closed
	if t == nil || t.layout != k.layout {
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

// counted is how many decisions of a rule or a limiter have been counted.
type counted struct{ allowed, denied uint64 }

func (c *counted) add(allowed bool) {
	if allowed {
		c.allowed++
	} else {
		c.denied++
	}
}

// Counted returns how many decisions Known.Take has counted for the limiter. It
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
