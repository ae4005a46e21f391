package memtable

import (
	"slices"
	"sync/atomic"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// rule is one rule of one limiter. It outlives Rebind: its id names the same table in every shard.
// Once the rule is retired, another rule may get the id.
type rule struct {
	id      int
	version int          // of the newest layout
	retired atomic.Bool  // the limiter has no such rule any more
	held    atomic.Int64 // keys
}

// layout describes a slot: where the states of a rule's limits are, and how they are counted. Each
// shard replaces the layout of a rule by one of a higher version when it next uses it.
type layout struct {
	rule      *rule
	version   int
	ids       []meter.Identity
	meters    []meter.Meter
	offsets   []int // where in a slot each limit's state begins
	stride    int   // words of a slot
	fixed     bool  // no limit's state grows
	fullHomes int   // length of a table with its shard's part of MaxKeys, and a sixth more
	sample    int   // how many keys are weighed to evict one
	most      int64 // the most keys of the rule, so that they fit in maxBytes; 0: maxKeys
}

// sampledToEvict is how many keys are weighed to evict one, if weighing is cheap: the rule has few
// limits and buckets.
const sampledToEvict = 8

func newLayout(r *rule, limits []meter.Limit, fullHomes int) *layout {
	l := &layout{rule: r, version: r.version, stride: slotHeader, fullHomes: fullHomes, fixed: true}
	for i, limit := range limits {
		l.meters = append(l.meters, meter.New(limit))
		l.ids = append(l.ids, limit.Identity())
		l.offsets = append(l.offsets, l.stride)
		l.stride += l.meters[i].FixedWords()
		l.fixed = l.fixed && !l.meters[i].Grows()
	}
	work := len(limits)
	for i := range l.meters {
		work += int(l.meters[i].Buckets / 8)
	}
	l.sample = min(max(3*sampledToEvict/max(work, 1), 1), sampledToEvict)
	return l
}

// mostBytes returns how many bytes a key takes at most: its slot, of which a sixth may be spare,
// and the blocks of its states.
func (l *layout) mostBytes() int64 {
	n := int64(l.stride) * 8 * 7 / 6
	for i := range l.meters {
		if most := l.meters[i].MostBytes(); most > 0 {
			n += 32 + most // 32: what refers to it
		}
	}
	return n
}

// leastInShard is how many keys of a rule a shard has room for, however large they are: with fewer,
// a new key would often evict a denied one.
const leastInShard = 16

// mostKeys returns layout.most.
func (ts *Tables) mostKeys(l *layout) int64 {
	if ts.maxBytes == 0 {
		return 0
	}
	most := max(ts.maxBytes/l.mostBytes(), leastInShard*int64(len(ts.shards)))
	if most >= ts.maxKeys {
		return 0
	}
	return most
}

// Rule is a rule whose keys are held. No two limits of a rule have the same identity.
type Rule struct {
	Name   string
	Limits []meter.Limit
}

// Binding is the rules of one limiter. Its methods may be called concurrently.
type Binding struct {
	ts      *Tables
	limiter string
	layouts []*layout // by rule index
}

// Bind prepares the tables for the rules of a limiter, whose names must differ. A limiter is bound
// once. The error is ErrClosed.
func (ts *Tables) Bind(limiter string, rules []Rule) (*Binding, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed.Load() {
		return nil, ErrClosed
	}
	return ts.bind(limiter, rules), nil
}

func (ts *Tables) bind(limiter string, rules []Rule) *Binding {
	b := &Binding{ts: ts, limiter: limiter}
	for _, r := range rules {
		name := ruleName{limiter, r.Name}
		known := ts.rules[name]
		if known == nil {
			known = &rule{id: ts.newID()}
			ts.rules[name] = known
		}
		known.version++
		fullHomes := int(ts.maxKeys / int64(len(ts.shards)) * 1167 / 1000)
		l := newLayout(known, r.Limits, fullHomes)
		l.most = ts.mostKeys(l)
		b.layouts = append(b.layouts, l)
	}
	return b
}

// Rebind returns a Binding for new rules of the same limiter. Keys of rules that stay keep the
// states of the limits whose identity stays. The error is ErrClosed.
func (b *Binding) Rebind(rules []Rule) (*Binding, error) {
	ts := b.ts
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed.Load() {
		return nil, ErrClosed
	}
	next := ts.bind(b.limiter, rules)
	for name, rule := range ts.rules {
		if name.limiter == b.limiter && !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == name.rule }) {
			ts.retire(name, rule)
		}
	}
	return next, nil
}

// ResetAll forgets all keys of the limiter. The error is ErrClosed.
func (b *Binding) ResetAll() error {
	ts := b.ts
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed.Load() {
		return ErrClosed
	}
	for _, l := range b.layouts {
		if l.rule.retired.Load() {
			continue
		}
		ts.blocked.unblock(l.rule)
		for i := range ts.shards {
			ts.shards[i].drop(ts, l.rule)
		}
	}
	return nil
}

// newID returns the id of a retired rule, or a new one.
func (ts *Tables) newID() int {
	if last := len(ts.freeIDs) - 1; last >= 0 {
		id := ts.freeIDs[last]
		ts.freeIDs = ts.freeIDs[:last]
		return id
	}
	ts.ids++
	return ts.ids - 1
}

// retire drops the counters of a rule that was removed. Old Bindings that still use the rule find
// no key of it.
func (ts *Tables) retire(name ruleName, rule *rule) {
	rule.retired.Store(true)
	ts.blocked.unblock(rule)
	delete(ts.rules, name)
	for i := range ts.shards {
		ts.shards[i].drop(ts, rule)
	}
	ts.freeIDs = append(ts.freeIDs, rule.id)
}

// drop removes the table of a rule.
func (s *shard) drop(ts *Tables, rule *rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.table(rule.id); t != nil {
		s.tables[rule.id] = nil
		ts.forget(t)
	}
	for len(s.tables) > 0 && s.tables[len(s.tables)-1] == nil {
		s.tables = s.tables[:len(s.tables)-1]
	}
}

// forget subtracts the keys of a dropped table from the counts.
func (ts *Tables) forget(t *table) {
	ts.keys.Add(-int64(t.used))
	ts.hold(t.layout.rule, -int64(t.used))
}

func (s *shard) table(id int) *table {
	if id >= len(s.tables) {
		return nil
	}
	return s.tables[id]
}

// tableFor returns the shard's table for a layout and updates it to that layout. If a Rebind has
// come in between, the table has a newer layout, which stays. It returns nil if the rule is
// retired.
func (s *shard) tableFor(l *layout) *table {
	t := s.table(l.rule.id)
	switch {
	case t == nil && !l.rule.retired.Load():
		for len(s.tables) <= l.rule.id {
			s.tables = append(s.tables, nil)
		}
		t = newTable(l)
		s.tables[l.rule.id] = t
	case t == nil:
		return nil
	case t.layout.rule != l.rule: // another rule has got the id
		return nil
	case t.layout.version < l.version:
		t.adopt(l)
	}
	return t
}

// adopt changes the table to a newer layout of its rule. The states of limits that are in both
// stay.
func (t *table) adopt(l *layout) {
	if slices.Equal(t.layout.ids, l.ids) {
		t.layout = l
		return
	}
	old := *t
	*t = table{layout: l, used: old.used, blocks: old.blocks}
	if t.blocks == nil && !l.fixed {
		t.blocks = new(blocks)
	}
	t.allocate(old.homes)
	dropped := make([]bool, len(old.layout.ids))
	from := make([]int, len(l.ids))
	for i := range dropped {
		dropped[i] = old.layout.meters[i].Grows() && !slices.Contains(l.ids, old.layout.ids[i])
	}
	for i, id := range l.ids {
		from[i] = slices.Index(old.layout.ids, id)
	}
	t.fill(&old, func(to, slot []uint64) {
		copy(to, slot[:slotHeader])
		for i, j := range from {
			if j >= 0 {
				copy(to[l.offsets[i]:], slot[old.layout.offsets[j]:][:l.meters[i].FixedWords()])
			}
		}
		for i, drop := range dropped {
			if drop {
				t.blocks.release(slot[old.layout.offsets[i]])
			}
		}
	})
}
