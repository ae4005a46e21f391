package core

import "context"

// NeedsOutcome says that a rule wants to know what becomes of the request: an
// adapter calls Settle once the handler is done.
func (d Decision) NeedsOutcome() bool {
	return d.detail.record != nil && d.detail.record.outcome
}

// Settle implements [Checker]: it gives back what Rule.Counts says does not
// count, and forgets the keys that Rule.Clears says are to be forgotten. A
// client that has gone away changes nothing of it.
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if !d.NeedsOutcome() || !d.detail.record.settled.CompareAndSwap(false, true) {
		return
	}
	s := d.detail.snap
	var clears, returns uint64
	for _, it := range d.detail.record.items {
		rule := &s.rules[it.rule]
		switch {
		case rule.Clears != nil && rule.Clears(o):
			clears |= 1 << it.rule
		case rule.Counts != nil && !rule.Counts(o):
			returns |= 1 << it.rule
		}
	}
	ctx := context.WithoutCancel(r.Context())
	l.settle(ctx, &d, clears, "reset", s.bound.Reset)
	l.settle(ctx, &d, returns, "refund", s.bound.Refund)
}

// settle does op with the items of the rules in the set.
func (l *Limiter) settle(ctx context.Context, d *Decision, rules uint64, operation string, op func(context.Context, *Batch) error) {
	if rules == 0 {
		return
	}
	c := l.session(d.detail.snap)
	c.recall(d, func(rule int) bool { return rules&(1<<rule) != 0 })
	if err := op(ctx, &c.batch); err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, operation, err)
	}
	l.release(c, nil)
}
