package core

// shortHit is the longest key, in bytes, that takeSingle takes.
const shortHit = 63

// takeSingle is take for the hit that most programs ask for: one short key that
// the Memory knows, of a rule with one limit of fixed size. It returns
// whether it has decided. All other hits take the long way, with the same outcome.
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
	at, done := s.memory.keys.TakeKnown(rule, key[:n+1], s.memory.m.now(), cost, peek, r.meter())
	if !done {
		return false
	}
	d.Limiter, d.Cost, d.Allowed = s.name, cost, r.Allowed
	if !r.Allowed {
		d.Reason = ReasonOverLimit
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
