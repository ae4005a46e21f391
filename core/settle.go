package core

import "context"

// NeedsOutcome says that a rule wants to know what becomes of the request: an
// adapter calls Settle once the handler is done.
func (d Decision) NeedsOutcome() bool {
	return d.detail.record != nil && d.detail.record.outcome || d.detail.shadow != nil && d.detail.shadow.NeedsOutcome()
}

// Settle implements [Checker]: it gives back what Rule.Counts says does not
// count, and forgets the keys that Rule.Clears says are to be forgotten. A
// client that has gone away changes nothing of it.
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if d.detail.shadow != nil {
		l.Settle(r, *d.detail.shadow, o)
	}
	record := d.detail.record
	if record == nil || !record.outcome || !record.settled.CompareAndSwap(false, true) {
		return
	}
	s := d.detail.snap
	clears, returns := false, false
	for i := range record.items {
		it := &record.items[i]
		rule := &s.rules[it.rule]
		switch {
		case rule.Clears != nil && rule.Clears(o):
			it.fate, clears = cleared, true
		case rule.Counts != nil && !rule.Counts(o):
			it.fate, returns = returned, true
		}
	}
	ctx := context.WithoutCancel(r.Context())
	if clears {
		l.settle(ctx, &d, cleared, "reset", s.bound.Reset)
	}
	if returns {
		l.settle(ctx, &d, returned, "refund", s.bound.Refund)
	}
}

// fate is what becomes of a recorded item when its request is settled.
type fate uint8

const (
	kept fate = iota
	cleared
	returned
)

// settle does op with the items of one fate.
func (l *Limiter) settle(ctx context.Context, d *Decision, f fate, operation string, op func(context.Context, *Batch) error) {
	c := l.session(d.detail.snap)
	c.recall(d, func(i int) bool { return d.detail.record.items[i].fate == f })
	if err := op(ctx, &c.batch); err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, operation, err)
	}
	l.release(c, nil)
}
