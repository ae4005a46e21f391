package core

import (
	"context"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// acquireSingle is takeFor for Acquire with one key that the Memory knows, of a rule whose
// only limit is one of Leases. It returns whether it has decided. All others take the long
// way, with the same outcome.
func (l *Limiter) acquireSingle(ctx context.Context, s *snapshot, hit *Hit, d *Decision) bool {
	if s.memory == nil || s.rehearsal || hit.Extra != "" || hit.Quotas != nil {
		return false
	}
	i := s.find(hit.Rule)
	if i < 0 || s.rules[i].slots == nil {
		return false
	}
	rule := &s.rules[i]
	now, lease := s.now(), newLease()
	var result Result
	if !rule.slots.Take(hit.Key, now, lease, result.meter()) {
		return false
	}
	d.LimitStatus.set(rule, 0, &result, meter.Own)
	d.Allowed, d.Limiter, d.Cost, d.detail.snap = result.Allowed, s.name, 1, s
	if result.Allowed {
		r := newRecord(1)
		r.items = append(r.items, recordedItem{rule: int32(i), hit: true, raw: true, key: hit.Key, cost: 1, at: now})
		r.results, r.lease = append(r.results, result), lease
		d.detail.record, d.detail.charged = r, true
		s.gained(ctx, r)
	} else {
		d.Reason = ReasonOverLimit
		d.detail.rule, d.detail.at, d.detail.hit, d.detail.raw, d.detail.key = int32(i), now, true, true, hit.Key
	}
	if s.observer != nil {
		s.observer.decided(ctx, d)
	}
	return true
}

// releaseSingle is endLease for a lease of such a rule.
func (l *Limiter) releaseSingle(s *snapshot, r *record) bool {
	it := &r.items[0]
	rule := &s.rules[it.rule]
	if rule.slots == nil || len(r.items) != 1 {
		return false
	}
	key := it.key
	if !it.raw {
		if key = it.key[:len(it.key)-1]; it.key[len(key)] != 0 {
			return false
		}
	}
	if !rule.slots.Release(key, it.at, r.lease) {
		return false
	}
	if l.lines.free() {
		var room [128]byte
		l.lines.freed(append(append(lineName(room[:0], rule.Name, nil), key...), 0))
	}
	return true
}
