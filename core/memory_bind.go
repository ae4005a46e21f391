package core

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// memoryRule is one rule of one limiter. It outlives Rebind: its id names the
// same table in every shard. Once the rule is retired, another rule may get the
// id.
type memoryRule struct {
	id      int
	version int          // of the newest layout
	retired atomic.Bool  // the limiter has no such rule any more
	held    atomic.Int64 // keys
}

// memoryLayout describes a slot: where the states of a rule's limits are, and
// how they are counted. Each shard replaces the layout of a rule by one of a
// higher version when it next uses it.
type memoryLayout struct {
	rule      *memoryRule
	version   int
	ids       []identity
	meters    []meter
	offsets   []int // where in a slot each limit's state begins
	stride    int   // words of a slot
	single    bool  // there is one limit, and its state does not grow
	fullHomes int   // length of a table with its shard's part of MaxKeys, and a sixth more
	sample    int   // how many keys are weighed to evict one
}

// sampledToEvict is how many keys are weighed to evict one, if weighing is
// cheap: it is the cheaper, the fewer limits and buckets the rule has.
const sampledToEvict = 8

func newMemoryLayout(rule *memoryRule, limits []Limit, fullHomes int) *memoryLayout {
	l := &memoryLayout{rule: rule, version: rule.version, meters: newMeters(limits), stride: slotHeader, fullHomes: fullHomes}
	for i, limit := range limits {
		l.ids = append(l.ids, limit.identity())
		l.offsets = append(l.offsets, l.stride)
		l.stride += l.meters[i].fixedWords()
	}
	l.single = len(limits) == 1 && !l.meters[0].grows()
	work := len(limits)
	for i := range l.meters {
		work += int(l.meters[i].buckets / 64)
	}
	l.sample = min(max(3*sampledToEvict/max(work, 1), 1), sampledToEvict)
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
			rule = &memoryRule{id: m.newID()}
			m.rules[name] = rule
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

// newID returns the id of a rule that is no more, or a new one.
func (m *Memory) newID() int {
	if last := len(m.freeIDs) - 1; last >= 0 {
		id := m.freeIDs[last]
		m.freeIDs = m.freeIDs[:last]
		return id
	}
	m.ids++
	return m.ids - 1
}

// retire drops the counters of a rule that the limiter has no more. Old Bounds
// that still use the rule find no key of it.
func (m *Memory) retire(name ruleName, rule *memoryRule) {
	rule.retired.Store(true)
	delete(m.rules, name)
	for i := range m.shards {
		m.shards[i].drop(m, rule)
	}
	m.freeIDs = append(m.freeIDs, rule.id)
}

// drop removes the table of a rule.
func (s *memoryShard) drop(m *Memory, rule *memoryRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.table(rule.id); t != nil {
		s.tables[rule.id] = nil
		m.forget(t)
	}
	for len(s.tables) > 0 && s.tables[len(s.tables)-1] == nil {
		s.tables = s.tables[:len(s.tables)-1]
	}
}

// forget takes the keys of a table that has been dropped out of the counts.
func (m *Memory) forget(t *memoryTable) {
	m.keys.Add(-int64(t.used))
	m.hold(t.layout.rule, -int64(t.used))
}

func (s *memoryShard) table(id int) *memoryTable {
	if id >= len(s.tables) {
		return nil
	}
	return s.tables[id]
}

// tableFor returns the shard's table for a layout and updates it to that
// layout. If a Rebind has come in between, the table has a newer layout, which
// stays. It returns nil if the rule is retired.
func (s *memoryShard) tableFor(l *memoryLayout) *memoryTable {
	t := s.table(l.rule.id)
	switch {
	case t == nil:
		return s.newTable(l)
	case t.layout.rule != l.rule: // another rule has got the id
		return nil
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
		t.forgetAllDenied()
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
	t.forgetAllDenied()
}

// forgetAllDenied is forgetDenied for all slots: other quotas have other waits.
func (t *memoryTable) forgetAllDenied() {
	if t.blocks == nil {
		return
	}
	for i := range t.slots {
		t.forgetDenied(t.slot(i))
	}
}
