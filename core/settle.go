package core

import (
	"context"
	"errors"
	"fmt"
)

// SetCost sets the actual cost of the request, in hits, once it is known: the tokens of an
// answer, or the rows that were read. What was charged before the handler is then an
// estimate. After the handler has returned, the limiter charges what is missing, even above
// the quota, or gives back what is too much. If nobody sets the cost, the estimate stays. If
// the handler panics, the cost counts only if it is more than the estimate.
//
// What is above a quota is a debt: the key waits until the algorithm has forgotten it.
// Windows forget hits when they end. A TokenBucket owes at most twice its Burst, and a
// SlidingLog keeps at most its Quota.
//
// SetCost settles the rules that have a [Rule.Cost]. If none of the rules that apply has
// one, SetCost does nothing and returns false. It also returns false if the decision has
// charged nothing, if it has been settled or given back, and if cost is negative.
//
// The last call before the handler returns counts. SetCost may be called concurrently. A
// cost above MaxQuota means MaxQuota.
//
// Handlers use the SetCost of their adapter. A program without requests uses
// [Limiter.Adjust].
func (d Decision) SetCost(cost int64) bool {
	if !d.Estimated() || cost < 0 || d.ended.Load() {
		return false
	}
	d.rest.said.Store(min(cost, MaxQuota) + 1)
	return true
}

// Estimated reports whether SetCost settles what the request was charged.
func (d Decision) Estimated() bool { return d.rest != nil && d.rest.estimate }

// Adjust settles what a decision has charged for each of its keys to cost, in hits. If
// cost is more, the difference is charged, even above the quotas. If it is less, the
// difference is given back into the window that it came from, as far as it has not left
// that; a cost of 0 gives everything back. A decision that has charged nothing is left
// alone. cost is 0 or more; a cost above MaxQuota means MaxQuota.
//
// A decision is settled once: by the first Adjust of any copy of it or, for a decision of
// Check, by Settle. Later calls do nothing. Of a decision of Check, Adjust settles the
// rules that have a [Rule.Cost], or all rules if none has one.
//
// The error wraps ErrNegativeCost, or it is the store's: then the difference may have been
// charged or given back, unless the error wraps [ErrNotCharged]: then Adjust may be called
// again. The charge is not lost if ctx ends.
func (l *Limiter) Adjust(ctx context.Context, d Decision, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("limiter %q: cost %d: %w", l.Name(), cost, ErrNegativeCost)
	}
	if d.ended == nil || !d.ended.CompareAndSwap(false, true) {
		return nil
	}
	err := l.adjust(context.WithoutCancel(ctx), &d, min(cost, MaxQuota), d.settlesTo())
	if errors.Is(err, ErrNotCharged) {
		d.ended.Store(false)
	}
	return err
}

// settlesTo returns for which items the actual cost counts: those of rules with a Cost of
// their own, or if there are none, all.
func (d *Decision) settlesTo() func(decided) bool {
	own := func(it decided) bool { return d.snap.rules[it.rule].Cost != nil }
	for i := range d.items() {
		if !d.hits && own(d.item(i)) {
			return own
		}
	}
	return func(decided) bool { return true }
}

// adjust settles the items for which want returns true to a cost.
func (l *Limiter) adjust(ctx context.Context, d *Decision, cost int64, want func(decided) bool) error {
	part := func(sign int64) func(int, decided) int64 {
		return func(_ int, it decided) int64 {
			if !want(it) {
				return 0
			}
			return sign * (cost - it.cost)
		}
	}
	return errors.Join(l.change(ctx, d, opCharge, part(1)), l.change(ctx, d, opRefund, part(-1)))
}

// change does an operation with the items for which cost returns more than 0.
func (l *Limiter) change(ctx context.Context, d *Decision, op operation, cost func(i int, it decided) int64) error {
	c := l.session(d.snap)
	defer l.release(c)
	c.recall(d, cost)
	if len(c.items) == 0 {
		return nil
	}
	err := c.again(ctx, op)
	if err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, op.String(), err)
	}
	if op != opCharge {
		l.freed(c.snap, c.items)
	}
	return err
}

// Settle implements [Checker]. It gives back the hits of the rules whose Counts returns
// false, resets the keys of the rules whose Clears returns true, and settles what is left
// to what [Decision.SetCost] has said, also if the client has closed the connection. In the
// end it releases the leases of the request: see [Leases].
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if d.rest.leased() && !d.rest.held.Load() {
		defer d.snap.limiter.endLease(r.Context(), d.snap, d.rest)
	}
	if d.rest == nil || !d.rest.outcome || d.ended == nil || d.ended.Load() {
		return
	}
	fates := make([]fate, d.items())
	ends := false
	for i := range fates {
		it := d.item(i)
		rule := &d.snap.rules[it.rule]
		switch {
		case rule.Clears != nil && rule.Clears(r, o):
			fates[i], ends = cleared, true
		case rule.Counts != nil && !rule.Counts(r, o):
			fates[i], ends = returned, true
		case d.rest.estimate && rule.Cost != nil && d.rest.said.Load() > 0:
			fates[i], ends = settled, true
		}
	}
	if !ends || !d.ended.CompareAndSwap(false, true) { // Adjust may have come in between
		return
	}
	ctx := context.WithoutCancel(r.Context())
	// The errors are logged.
	_ = l.change(ctx, &d, opReset, func(i int, _ decided) int64 { return one(fates[i] == cleared) })
	_ = l.change(ctx, &d, opRefund, func(i int, it decided) int64 { return it.cost * one(fates[i] == returned) })
	if said := d.rest.said.Load() - 1; said >= 0 {
		settle := func(sign int64) func(int, decided) int64 {
			return func(i int, it decided) int64 {
				if more := said - it.cost; fates[i] == settled && !(o.Panicked && more < 0) {
					return sign * more
				}
				return 0
			}
		}
		_ = l.change(ctx, &d, opCharge, settle(1))
		_ = l.change(ctx, &d, opRefund, settle(-1))
	}
}

// fate is what Settle does with an item.
type fate uint8

const (
	kept fate = iota
	cleared
	returned
	settled // to the actual cost
)

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
