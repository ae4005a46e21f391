package core

import (
	"context"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// takeSingle is take for the hit that most programs ask for: a key that the
// Memory knows, of a rule with one limit of fixed size. It returns
// whether it has decided. All other hits take the long way, with the same outcome.
func (l *Limiter) takeSingle(s *snapshot, cost int64, peek bool, hit *Hit, d *Decision) bool {
	if s.memory == nil || cost <= 0 || hit.Extra != "" {
		return false
	}
	i, err := s.rule(hit.Rule)
	if err != nil || !s.rules[i].single {
		return false
	}
	mode := memtable.Charge | memtable.Count
	if peek {
		mode = 0
	} else if s.rehearsal {
		mode = memtable.Charge
	}
	m := s.memory.keys.Meter(i)
	if hit.Quotas != nil {
		if len(hit.Quotas) != 1 || checkQuota(&s.rules[i].Limits[0], hit.Quotas[0]) != nil || hit.Quotas[0] == Unlimited {
			return false
		}
		var room meter.Meter
		m, _ = m.For(hit.Quotas[0], &room)
	}
	now := s.memory.m.now()
	c, at, allowed, done := s.memory.keys.TakeKnown(i, m, hit.Key, now, cost, mode)
	if !done {
		return false
	}
	rule := &s.rules[i]
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = m.Tell(c, now, cost, allowed)
	d.Allowed, d.Limiter, d.Cost = allowed, s.name, cost
	d.Rule, d.Limit, d.Exceeded = rule.Name, rule.Limits[0], !allowed
	if hit.Quotas != nil {
		d.Limit.setQuota(hit.Quotas[0])
	}
	d.detail.snap, d.detail.charged = s, allowed && !peek
	d.detail.rule, d.detail.at, d.detail.hit, d.detail.raw, d.detail.key = int32(i), at, true, true, hit.Key
	if !allowed {
		d.Reason = ReasonOverLimit
		if s.rehearsal {
			d.Allowed, d.Rehearsal = true, true
		}
	}
	if !peek && s.rehearsal {
		l.counts.count(d)
	}
	return true
}

// allowSingle is takeSingle for Allow: one hit, and no more of the decision than
// whether it is allowed.
func (s *snapshot) allowSingle(hit *Hit) (allowed, done bool) {
	if s.quick == nil || hit.Quotas != nil || hit.Extra != "" {
		return false, false
	}
	i, err := s.rule(hit.Rule)
	if err != nil || !s.rules[i].single {
		return false, false
	}
	_, _, allowed, done = s.memory.keys.TakeKnown(i, nil, hit.Key, s.memory.m.now(), 1, memtable.Charge|memtable.Count)
	return allowed, done
}

// allowObserved is allowSingle with an observer of decisions.
func (s *snapshot) allowObserved(ctx context.Context, hit *Hit) (allowed, done bool) {
	if s.memory == nil || s.rehearsal || hit.Quotas != nil || hit.Extra != "" {
		return false, false
	}
	i, err := s.rule(hit.Rule)
	if err != nil || !s.rules[i].single {
		return false, false
	}
	now := s.memory.m.now()
	c, _, allowed, done := s.memory.keys.TakeKnown(i, nil, hit.Key, now, 1, memtable.Charge|memtable.Count)
	if !done {
		return false, false
	}
	left, _, _, retry := s.memory.keys.Meter(i).Tell(c, now, 1, allowed)
	s.observer.single(ctx, allowed, i, hit.Key, left, retry)
	return allowed, true
}
