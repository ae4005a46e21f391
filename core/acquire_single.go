package core

import (
	"context"

	"github.com/floodgate-go/floodgate/core/internal/memtable"
)

// A slot is a lease with one slot of a key in the Memory, of a rule whose only limit is one
// of Leases. Its decision needs no record: the Memory knows whether the lease has ended, and
// whether Decision.Hold has held it. All other leases take the long way, with the same
// outcome.

// acquireSingle is takeFor for Acquire with one key of such a rule. It returns whether it has
// decided.
func (l *Limiter) acquireSingle(ctx context.Context, s *snapshot, hit *Hit, d *Decision) bool {
	if s.dryRun || hit.Extra != "" || hit.Quotas != nil {
		return false
	}
	i := s.find(hit.Rule)
	if i < 0 || !s.takeSlot(i, hit.Key, d) {
		return false
	}
	d.marks.hit, d.marks.raw, d.detail.key = true, true, hit.Key
	if d.Allowed && s.tellsHeld() {
		r := newRecord(1)
		r.lease = d.slot()
		r.items = append(r.items, d.decidingItem())
		r.results = append(r.results, Result{Allowed: true, Remaining: d.Remaining, ResetAfter: d.ResetAfter, MoreAfter: d.MoreAfter})
		d.record, d.slotted = r, false
		s.gained(ctx, r)
	}
	if s.observer != nil {
		s.observer.decided(ctx, d)
	}
	return true
}

// takeSlot takes a slot of the key that is text and a zero byte. It returns whether it has
// decided. The caller says in the decision where the key is from.
func (s *snapshot) takeSlot(i int, text string, d *Decision) bool {
	rule := &s.rules[i]
	if rule.slots == nil {
		return false
	}
	now, lease := s.now(), newLease()&^memtable.HeldLease|1
	var result Result
	if !rule.slots.Take(text, now, lease, result.meter()) {
		return false
	}
	d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = result.Remaining, result.ResetAfter, result.MoreAfter, result.RetryAfter
	d.Limit = rule.Limits[0]
	d.Rule, d.Limiter, d.Cost = rule.Name, s.name, 1
	d.detail.snap, d.rule = s, int32(i)
	if result.Allowed {
		d.Allowed, d.marks.charged, d.slotted, d.detail.at = true, true, true, int64(lease)
	} else {
		d.Reason, d.Exceeded, d.detail.at = ReasonOverLimit, true, now
	}
	return true
}

// slot returns the lease that takeSlot has given, 0 if the decision has none of it.
func (d *Decision) slot() (lease uint64) {
	if !d.slotted {
		return 0
	}
	return uint64(d.detail.at)
}

// slotKey returns the key of a slot as package memtable takes it.
func (d *Decision) slotKey() string {
	if d.marks.raw {
		return d.detail.key
	}
	return d.detail.key[:len(d.detail.key)-1]
}

// endSlot ends the lease of a slot. If held is true, it ends it also if Decision.Hold has held it.
func (l *Limiter) endSlot(s *snapshot, rule int32, key string, lease uint64, held bool) {
	if s.rules[rule].slots.Release(key, lease, held) && l.lines.free() {
		l.freedSlot(s, rule, key)
	}
}

// freedSlot is freed for a slot.
func (l *Limiter) freedSlot(s *snapshot, rule int32, key string) {
	var room [128]byte
	l.lines.freed(append(append(lineName(room[:0], s.rules[rule].Name, nil), key...), 0))
}

// releaseSlot returns a function that ends the lease of a slot.
func (d *Decision) releaseSlot(lease uint64) func() {
	s, rule, key := d.detail.snap, d.rule, d.slotKey()
	return func() { s.limiter.endSlot(s, rule, key, lease, true) }
}

// holdSlot is Hold for the lease of a slot.
func (d *Decision) holdSlot(lease uint64) (release func(), held bool) {
	if slots := d.detail.snap.rules[d.rule].slots; !slots.Hold(d.slotKey(), lease) {
		return doNothing, false
	}
	return d.releaseSlot(lease), true
}

// releaseSingle is endLease for a lease of a record that takeSlot has given, or could have.
func (l *Limiter) releaseSingle(s *snapshot, r *record) bool {
	it := &r.items[0]
	if s.rules[it.rule].slots == nil || len(r.items) != 1 {
		return false
	}
	key := it.key
	if !it.raw {
		if key = it.key[:len(it.key)-1]; it.key[len(key)] != 0 {
			return false
		}
	}
	l.endSlot(s, it.rule, key, r.lease, false)
	return true
}
