package core

// shortHit is the longest key, in bytes, that takeSingle takes.
const shortHit = 63

// takeSingle is take for the hit that most programs ask for: one short key that
// the Memory knows, of a rule with one limit of fixed size. It says whether it
// has decided; all others take the long way, with the same outcome.
func (l *Limiter) takeSingle(s *snapshot, cost int64, peek bool, hit *Hit, d *Decision) bool {
	if s.memory == nil || cost <= 0 || len(hit.Key) > shortHit {
		return false
	}
	rule, err := s.rule(hit.Rule)
	if err != nil || !s.rules[rule].single {
		return false
	}
	var key [shortHit + 1]byte // with the zero byte that ends a key: see closeKey
	n := copy(key[:shortHit], hit.Key)
	var r Result
	at, done := s.memory.takeKnown(rule, key[:n+1], cost, peek, &r)
	if !done {
		return false
	}
	d.Limiter, d.Cost, d.Allowed = s.name, cost, r.Allowed
	if !r.Allowed {
		d.Reason = OverLimit
		if s.rehearsal {
			d.Allowed, d.Rehearsal = true, true
		}
	}
	d.LimitStatus.set(&s.rules[rule], 0, &r)
	d.detail.snap, d.detail.charged = s, r.Allowed && !peek
	d.detail.rule, d.detail.at, d.detail.hit, d.detail.hitKey = int32(rule), at, true, hit.Key
	if !peek {
		l.counts.count(d)
	}
	return true
}

// takeKnown decides on a key of a single rule. done is false if the key is not
// in the table.
func (b *memoryBound) takeKnown(rule int, key []byte, cost int64, peek bool, r *Result) (at int64, done bool) {
	layout := b.layouts[rule]
	h := b.m.hash.sum(key)
	s := &b.m.shards[h.b&b.m.mask]
	now := b.m.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table(layout.rule.id) // nil once the store is closed
	if t == nil || t.layout != layout {
		return 0, false
	}
	i, found := t.find(h)
	if !found {
		return 0, false
	}
	return t.takeSingle(i, now, cost, peek, r), true
}

// takeSingle decides on the key of a slot of a table whose layout is single. It
// returns the time at which the decision was made.
func (t *memoryTable) takeSingle(i int, now, cost int64, peek bool, r *Result) (at int64) {
	at = t.layout.meters[0].take(t.slot(i)[slotHeader:], now, cost, peek, r)
	if r.Remaining == 0 {
		t.deny(i)
	}
	return at
}
