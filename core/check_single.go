package core

import (
	"github.com/floodgate-go/floodgate/core/internal/memtable"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// checksSingle reports whether knownSingle may decide on the limiter's requests: the limiter
// has one rule with one limit of fixed size, or of Leases, and only the rule's key and quota depend on the request.
func (s *snapshot) checksSingle() bool {
	if len(s.rules) != 1 || !s.plain || s.choose != nil || s.dryRun || s.waits {
		return false
	}
	r := &s.rules[0]
	counted := r.single || r.slots != nil && !s.tellsHeld()
	return counted && r.Cost == nil && r.Counts == nil && r.Clears == nil
}

// knownSingle does what known does, for such a limiter. If the Memory knows the key, it also
// decides on the request, counts the decision and returns true.
func (a *asking) knownSingle(p *bodyProbe, d *Decision) (decided bool) {
	a.cost, p.wanted = 1, false
	added, err := a.addKey(p, 0)
	quota := meter.Own
	if added && a.snap.rules[0].Quota != nil {
		quota, err = a.askQuota(p, 0, 0)
	}
	switch {
	case p.wanted:
		a.keys, a.quotaFailed = a.keys[:0], false
		a.waits = append(a.waits, 0)
		return false
	case !added:
		a.note(0, err)
		return false
	case err == nil && a.takeKnown(quota, d):
		return true
	}
	a.addItem(0, 0, 1)
	if err == nil && quota != meter.Own {
		a.quotas = append(a.quotas, quota)
		a.spans[0].quotas = 1
	}
	a.note(0, err)
	return false
}

// takeKnown decides on the request if the Memory knows its key.
func (a *asking) takeKnown(quota int64, d *Decision) (decided bool) {
	if quota == Unlimited {
		return false
	}
	s := a.snap
	known := s.rules[0].known
	if known == nil {
		return quota == meter.Own && a.takeKnownSlot(d)
	}
	m := known.Meter()
	if quota != meter.Own {
		var room meter.Meter
		m, _ = m.For(quota, &room)
	}
	key := a.keep(a.keys)
	now := s.now()
	c, at, allowed, done := known.Take(m, key[:len(key)-1], now, 1, memtable.Charge|memtable.Count)
	if !done {
		return false
	}
	rule := &s.rules[0]
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = m.Tell(c, now, 1, allowed)
	d.Allowed, d.Limiter, d.Cost = allowed, s.name, 1
	d.Limit = *rule.first
	d.Rule, d.Exceeded = rule.Name, !allowed
	if quota != meter.Own {
		d.Limit.setQuota(quota)
	}
	d.detail.snap, d.marks.charged, d.detail.at, d.detail.key = s, allowed, at, key
	if !allowed {
		d.Reason = ReasonOverLimit
	}
	return true
}

// takeKnownSlot is takeKnown for a limit of Leases.
func (a *asking) takeKnownSlot(d *Decision) (decided bool) {
	if a.snap.rules[0].slots == nil {
		return false
	}
	key := a.keep(a.keys)
	d.detail.key = key
	return a.snap.takeSlot(0, key[:len(key)-1], d)
}
