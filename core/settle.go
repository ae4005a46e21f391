package core

import "context"

// NeedsOutcome reports whether a rule depends on the outcome of the request, or the
// request has leases. If so, an adapter calls Settle once the handler has returned.
func (d outcomes) NeedsOutcome() bool {
	return d.slotted || d.record.wantsOutcome()
}

func (r *record) wantsOutcome() bool { return r != nil && (r.outcome || r.lease != 0) }

// Settle implements [Checker]. It refunds the hits of the rules whose Counts
// returns false, resets the keys of the rules whose Clears returns true, and settles
// what is left to what [Decision.SetCost] has said, also if the client has closed the
// connection; after a panic only if that is more. In the end it releases the leases of the request: see [Leases].
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if lease := d.slot(); lease != 0 {
		l.endSlot(d.detail.snap, d.rule, d.slotKey(), lease, false)
		return
	}
	record := d.record
	if record.leased() && !record.held.Load() {
		defer l.endLease(r.Context(), d.detail.snap, record)
	}
	if record == nil || !record.outcome || !record.settled.CompareAndSwap(false, true) {
		return
	}
	s := d.detail.snap
	clears, returns := false, false
	fates := make([]fate, len(record.items))
	said := record.said.Load() - 1
	for i := range record.items {
		it := &record.items[i]
		rule := &s.rules[it.rule]
		switch {
		case rule.Clears != nil && rule.Clears(r, o):
			fates[i], clears = cleared, true
		case rule.Counts != nil && !rule.Counts(r, o):
			fates[i], returns = returned, true
		}
	}
	ctx := context.WithoutCancel(r.Context())
	if record.adjusted.Load() { // to 0, by the handler: nothing is left to give back or to charge
		returns, said = false, -1
	}
	if clears || returns {
		record.fates.Store(&fates)
	}
	if clears {
		l.settle(ctx, &d, fates, cleared, "reset", s.bound.Reset)
	}
	if returns {
		l.settle(ctx, &d, fates, returned, "refund", s.bound.Refund)
	}
	if said >= 0 && record.adjusted.CompareAndSwap(false, true) {
		settles := record.settlesTo(s)
		wanted := func(i int) bool { return settles(i) && (!o.Panicked || said > record.items[i].cost) }
		_ = l.adjust(ctx, &d, said, wanted) // logged
	}
}

// fate is what Settle does with a recorded item.
type fate uint8

const (
	kept fate = iota
	cleared
	returned
)

// settle does op with the items of one fate.
func (l *Limiter) settle(ctx context.Context, d *Decision, fates []fate, f fate, operation string, op func(context.Context, *Batch) error) {
	c := l.session(d.detail.snap)
	c.recall(d, func(i int) bool { return fates[i] == f })
	if err := c.snap.run(ctx, operation, &c.batch, op); err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, operation, err)
	}
	l.freed(c.snap, c.items)
	l.release(c, nil)
}
