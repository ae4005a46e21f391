package core

import "github.com/floodgate-go/floodgate/core/internal/memtable"

// checksSingle reports whether knownSingle may decide on the limiter's requests: the limiter
// has one rule with one limit of fixed size, and only the rule's key depends on the request.
func (s *snapshot) checksSingle() bool {
	if len(s.rules) != 1 || !s.plain || s.choose != nil || s.rehearsal {
		return false
	}
	r := &s.rules[0]
	return r.single && !r.Shadow && r.Cost == nil && r.Quota == nil && r.Counts == nil && r.Clears == nil
}

// knownSingle does what known does, for such a limiter. If the Memory knows the key, it also
// decides on the request, counts the decision and returns true.
func (a *asking) knownSingle(p *bodyProbe, d *Decision) (decided bool) {
	a.cost, p.wanted = 1, false
	added, err := a.addKey(p, 0)
	switch {
	case p.wanted:
		a.keys = a.keys[:0]
		a.waits = append(a.waits, 0)
		return false
	case !added:
		a.note(0, err)
		return false
	}
	s := a.snap
	key := a.keep(a.keys)
	now := s.memory.m.now()
	c, at, allowed, done := s.memory.keys.TakeKnown(0, nil, key[:len(key)-1], now, 1, memtable.Charge|memtable.Count)
	if !done {
		a.addItem(0, 0, 1)
		return false
	}
	rule := &s.rules[0]
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = s.memory.keys.Meter(0).Tell(c, now, 1, allowed)
	d.Allowed, d.Limiter, d.Cost = allowed, s.name, 1
	d.Rule, d.Limit, d.Exceeded = rule.Name, rule.Limits[0], !allowed
	d.detail.snap, d.detail.charged, d.detail.at, d.detail.key = s, allowed, at, key
	if !allowed {
		d.Reason = ReasonOverLimit
	}
	return true
}
