package core

import (
	"context"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// bindSingles notes what takeSingle and acquireSingle need of memory.
func (s *snapshot) bindSingles() {
	s.now = s.memory.m.now
	for i := range s.rules {
		r := &s.rules[i]
		if r.single {
			r.known, r.first = s.memory.keys.Known(i), &r.Limits[0]
		}
		if r.leases {
			r.slots = s.memory.keys.Slots(i)
		}
	}
}

// takeSingle is takeFor for the hit that most programs ask for: a key that the
// Memory knows, of a rule with one limit of fixed size. It returns
// whether it has decided. All other hits take the long way, with the same outcome.
func (l *Limiter) takeSingle(ctx context.Context, s *snapshot, cost int64, what purpose, hit *Hit, d *Decision) bool {
	if cost <= 0 || hit.Extra != "" {
		return false
	}
	i := s.find(hit.Rule)
	if i < 0 {
		return false
	}
	rule := &s.rules[i]
	known := rule.known
	if known == nil {
		return false
	}
	mode := memtable.Charge | memtable.Count
	if what == peeking {
		mode = 0
	} else if s.dryRun {
		mode = memtable.Charge
	}
	m := known.Meter()
	if hit.Quotas != nil {
		if len(hit.Quotas) != 1 || checkQuota(rule.first, hit.Quotas[0]) != nil || hit.Quotas[0] == Unlimited {
			return false
		}
		var room meter.Meter
		m, _ = m.For(hit.Quotas[0], &room)
	}
	now := s.now()
	c, at, allowed, done := known.Take(m, hit.Key, now, cost, mode)
	if !done {
		return false
	}
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = m.Tell(c, now, cost, allowed)
	d.Limit = *rule.first // on its own: in a statement with others, it would be copied twice
	d.Allowed, d.Cost, d.Exceeded = allowed, cost, !allowed
	d.marks.charged, d.detail.at, d.rule, d.marks.hit, d.marks.raw = allowed && what != peeking, at, int32(i), true, true
	d.Limiter, d.Rule, d.detail.snap, d.detail.key = s.name, rule.Name, s, hit.Key
	if hit.Quotas != nil {
		d.Limit.setQuota(hit.Quotas[0])
	}
	if !allowed {
		d.Reason = ReasonOverLimit
		if s.dryRun {
			d.Allowed, d.DryRun = true, true
		}
	}
	if what == peeking {
		return true
	}
	if s.dryRun {
		l.counts.count(d)
	}
	if s.observer != nil {
		s.observer.decided(ctx, d)
	}
	return true
}

// allowSingle is takeSingle for Allow: one hit, and no more of the decision than
// whether it is allowed.
func (s *snapshot) allowSingle(hit *Hit) (allowed, done bool) {
	if s.quick == nil || hit.Quotas != nil || hit.Extra != "" {
		return false, false
	}
	i := s.find(hit.Rule)
	if i < 0 || s.rules[i].known == nil {
		return false, false
	}
	known := s.rules[i].known
	_, _, allowed, done = known.Take(known.Meter(), hit.Key, s.now(), 1, memtable.Charge|memtable.Count)
	return allowed, done
}

// allowObserved is allowSingle with an observer of decisions.
func (s *snapshot) allowObserved(ctx context.Context, hit *Hit) (allowed, done bool) {
	if s.dryRun || hit.Quotas != nil || hit.Extra != "" {
		return false, false
	}
	i := s.find(hit.Rule)
	if i < 0 || s.rules[i].known == nil {
		return false, false
	}
	known := s.rules[i].known
	now := s.now()
	c, _, allowed, done := known.Take(known.Meter(), hit.Key, now, 1, memtable.Charge|memtable.Count)
	if !done {
		return false, false
	}
	o := Observation{Allowed: allowed, Rule: i, Cost: 1, Capacity: s.rules[i].first.capacity()}
	if allowed {
		o.Remaining = known.Meter().Left(c, now)
	} else {
		o.Reason = ReasonOverLimit
		o.Remaining, _, _, o.RetryAfter = known.Meter().Tell(c, now, 1, false)
	}
	if s.observer.Keys {
		o.Key = hit.Key
	}
	s.observer.tellOf(ctx, &o)
	return allowed, true
}
