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
// that; a cost of 0 gives everything back. A decision that is not of ReasonWithinLimits has
// charged nothing, and is left alone. cost is 0 or more; a cost above MaxQuota means MaxQuota.
//
// A charge is adjusted once: later calls, for any copy of the decision, do nothing. For a
// decision of Check, a cost above 0 changes only the rules that have a [Rule.Cost]. Before
// Settle, which an adapter calls after the handler, Adjust only notes the cost, as SetCost
// does. After Settle, Adjust charges or gives back at once, or does nothing if SetCost was
// called before. So a stream that outlives its handler calls Adjust.
//
// The error wraps ErrNegativeCost, or it is the store's: then the difference may have been
// charged or given back, unless the error wraps [ErrNotCharged]: then Adjust may be called
// again. The charge is not lost if ctx ends.
func (l *Limiter) Adjust(ctx context.Context, d Decision, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("limiter %q: cost %d: %w", l.Name(), cost, ErrNegativeCost)
	}
	if d.ended == nil || !d.Allowed {
		return nil
	}
	done := d.rest != nil && d.rest.settled.Load()
	estimates := !d.hits && (cost > 0 || done)
	if estimates && !(done && d.Estimated()) {
		d.SetCost(cost)
		return nil
	}
	if !d.ended.CompareAndSwap(false, true) {
		return nil
	}
	err := l.adjust(context.WithoutCancel(ctx), &d, min(cost, MaxQuota), estimates, false)
	if errors.Is(err, ErrNotCharged) {
		d.ended.Store(false)
	}
	return err
}

// adjust settles the items to a cost: all of them or, if estimates is true, those of rules
// with a Cost of their own. If panicked is true, it gives nothing back: what a handler has
// said before it panicked may be too little.
func (l *Limiter) adjust(ctx context.Context, d *Decision, cost int64, estimates, panicked bool) error {
	part := func(sign int64) func(int, decided) int64 {
		return func(i int, it decided) int64 {
			if d.fate(i) != kept || estimates && d.snap.rules[it.rule].Cost == nil {
				return 0
			}
			return sign * (cost - it.cost)
		}
	}
	changed, err := l.change(ctx, d, OpCharge, part(1))
	if err != nil || panicked {
		return err
	}
	if _, err = l.change(ctx, d, OpRefund, part(-1)); changed && err != nil {
		return fmt.Errorf("giving back, after the charge of other keys: %v", err) //nolint:errorlint // not ErrNotCharged: a second call would charge them again
	}
	return err
}

// change does an operation with the items for which cost returns more than 0, if there are any.
func (l *Limiter) change(ctx context.Context, d *Decision, op Op, cost func(i int, it decided) int64) (changed bool, err error) {
	c := l.session(d.snap)
	defer l.release(c)
	c.recall(d, cost)
	if len(c.batch.Items) == 0 {
		return false, nil
	}
	err = c.do(ctx, op)
	if err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, op.String(), err)
	}
	if op != OpCharge {
		l.lines.freed(c.snap, c.batch.Items)
	}
	return true, err
}

// Settle implements [Checker]. It gives back the hits of the rules whose Counts returns
// false, resets the keys of the rules whose Clears returns true, and settles what is left
// to what [Decision.SetCost] has said, also if the client has closed the connection. In the
// end it releases the leases of the request: see [Leases].
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if d.rest.leased() && !d.rest.held.Load() {
		defer d.snap.limiter.endLease(r.Context(), d.snap, d.rest)
	}
	if d.rest == nil || !d.rest.outcome || !d.rest.settled.CompareAndSwap(false, true) {
		return
	}
	fates := make([]fate, d.items())
	clears, returns := false, false
	for i := range fates {
		rule := &d.snap.rules[d.item(i).rule]
		switch {
		case rule.Clears != nil && rule.Clears(r, o):
			fates[i], clears = cleared, true
		case rule.Counts != nil && !rule.Counts(r, o):
			fates[i], returns = returned, true
		}
	}
	if clears || returns {
		d.rest.fates.Store(&fates)
	}
	ctx := context.WithoutCancel(r.Context()) // the errors below are logged
	if clears {
		// A reset has no cost: 1 selects the item.
		_, _ = l.change(ctx, &d, OpReset, func(i int, _ decided) int64 { return only(fates[i] == cleared, 1) })
	}
	if d.ended.Load() { // the handler has given everything back
		return
	}
	if returns {
		_, _ = l.change(ctx, &d, OpRefund, func(i int, it decided) int64 { return only(fates[i] == returned, it.cost) })
	}
	if said := d.rest.said.Load() - 1; said >= 0 && d.ended.CompareAndSwap(false, true) {
		_ = l.adjust(ctx, &d, said, true, o.Panicked)
	}
}

// fate is what Settle does with an item.
type fate uint8

const (
	kept fate = iota
	cleared
	returned
)

// fate returns what Settle has done with an item.
func (d *Decision) fate(i int) fate {
	if d.rest == nil {
		return kept
	}
	if fates := d.rest.fates.Load(); fates != nil {
		return (*fates)[i]
	}
	return kept
}

// only returns n if yes is true, else 0.
func only(yes bool, n int64) int64 {
	if yes {
		return n
	}
	return 0
}
