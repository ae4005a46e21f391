package core

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// memoryRule is one rule of one limiter. It outlives Rebind: its id names the
// same table in every shard.
type memoryRule struct {
	id      int
	version int         // of the newest layout
	retired atomic.Bool // no rule of the limiter any more
}

// memoryLayout says where in a slot the states of a rule's limits are, and how
// they are counted. Layouts of a rule are replaced by ones of higher version,
// shard by shard, when a shard is next used.
type memoryLayout struct {
	rule      *memoryRule
	version   int
	ids       []identity
	meters    []meter
	offsets   []int // where in a slot each limit's state begins
	stride    int   // words of a slot
	fullHomes int   // length of a table with its shard's part of MaxKeys, and a sixth more
}

func newMemoryLayout(rule *memoryRule, limits []Limit, fullHomes int) *memoryLayout {
	l := &memoryLayout{rule: rule, version: rule.version, meters: newMeters(limits), stride: slotHeader, fullHomes: fullHomes}
	for i, limit := range limits {
		l.ids = append(l.ids, limit.identity())
		l.offsets = append(l.offsets, l.stride)
		l.stride += l.meters[i].fixedWords()
	}
	return l
}

func (l *memoryLayout) offset(limit int) int { return l.offsets[limit] }

// memoryBound is the Bound of a Memory.
type memoryBound struct {
	m       *Memory
	limiter string
	layouts []*memoryLayout // by rule index
}

// Bind implements [Store].
func (m *Memory) Bind(limiter string, rules []StoreRule) (Bound, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return nil, fmt.Errorf("binding limiter %q: %w", limiter, ErrClosed)
	}
	if m.names[limiter] {
		return nil, fmt.Errorf("%w: Name: %q: this store already counts for a limiter of that name", ErrConfig, limiter)
	}
	b, err := m.bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	m.names[limiter] = true
	return b, nil
}

func (m *Memory) bind(limiter string, rules []StoreRule) (*memoryBound, error) {
	b := &memoryBound{m: m, limiter: limiter}
	for i, r := range rules {
		if slices.ContainsFunc(rules[:i], func(o StoreRule) bool { return o.Name == r.Name }) {
			return nil, fmt.Errorf("%w: rule %q: stands twice", ErrConfig, r.Name)
		}
	}
	for _, r := range rules {
		name := ruleName{limiter, r.Name}
		rule := m.rules[name]
		if rule == nil {
			rule = &memoryRule{id: m.ids}
			m.rules[name] = rule
			m.ids++
		}
		rule.version++
		fullHomes := int(m.maxKeys / int64(len(m.shards)) * 1167 / 1000)
		b.layouts = append(b.layouts, newMemoryLayout(rule, r.Limits, fullHomes))
	}
	return b, nil
}

// Rebind implements [Bound].
func (b *memoryBound) Rebind(rules []StoreRule) (Bound, error) {
	m := b.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return nil, fmt.Errorf("binding limiter %q: %w", b.limiter, ErrClosed)
	}
	next, err := m.bind(b.limiter, rules)
	if err != nil {
		return nil, err
	}
	for name, rule := range m.rules {
		if name.limiter == b.limiter && !slices.ContainsFunc(rules, func(r StoreRule) bool { return r.Name == name.rule }) {
			m.retire(name, rule)
		}
	}
	return next, nil
}

// retire drops the counters of a rule that is no more. What still uses it sees
// keys that have never been seen.
func (m *Memory) retire(name ruleName, rule *memoryRule) {
	rule.retired.Store(true)
	delete(m.rules, name)
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		if t := s.table(rule.id); t != nil {
			m.keys.Add(-int64(t.used))
			s.tables[rule.id] = nil
		}
		s.mu.Unlock()
	}
}

func (s *memoryShard) table(id int) *memoryTable {
	if id >= len(s.tables) {
		return nil
	}
	return s.tables[id]
}

// tableFor returns the shard's table for a layout and brings it up to it. The
// table has a newer layout than asked for where a Rebind has come in between:
// the newer one holds. It is nil where there are no such counters any more.
func (s *memoryShard) tableFor(l *memoryLayout) *memoryTable {
	t := s.table(l.rule.id)
	switch {
	case t == nil:
		return s.newTable(l)
	case t.layout.version < l.version:
		t.adopt(l)
	}
	return t
}

func (s *memoryShard) newTable(l *memoryLayout) *memoryTable {
	if l.rule.retired.Load() {
		return nil
	}
	for len(s.tables) <= l.rule.id {
		s.tables = append(s.tables, nil)
	}
	t := newMemoryTable(l)
	s.tables[l.rule.id] = t
	return t
}

// adopt changes the table to a newer layout of its rule. The states of limits
// that are in both stay.
func (t *memoryTable) adopt(l *memoryLayout) {
	if slices.Equal(t.layout.ids, l.ids) {
		t.layout = l
		return
	}
	old := *t
	*t = memoryTable{layout: l, used: old.used, blocks: old.blocks}
	t.needBlocks()
	t.allocate(old.homes)
	dropped := make([]bool, len(old.layout.ids))
	from := make([]int, len(l.ids))
	for i := range dropped {
		dropped[i] = old.layout.meters[i].grows() && !slices.Contains(l.ids, old.layout.ids[i])
	}
	for i, id := range l.ids {
		from[i] = slices.Index(old.layout.ids, id)
	}
	t.fill(&old, func(to, slot []uint64) {
		copy(to, slot[:slotHeader])
		for i, j := range from {
			if j >= 0 {
				copy(to[l.offset(i):], slot[old.layout.offset(j):][:l.meters[i].fixedWords()])
			}
		}
		for i, drop := range dropped {
			if drop {
				t.blocks.free(slot[old.layout.offset(i)])
			}
		}
	})
}
