package core

import (
	"context"
	"errors"
	"fmt"
)

// SetCost sets the real cost of the request, in hits, when it is known: the tokens of an answer, or
// the rows read. After the handler, the limiter charges the difference, even above the quota (see
// [OpCharge]), or refunds it. The last call counts. If the handler panics, nothing is refunded.
//
// It settles only rules with a [Rule.Cost]. It returns false and does nothing if no rule has one,
// if nothing was charged, if the decision is settled, or if cost is negative. It may be called
// concurrently. Handlers call the SetCost of their adapter. Programs without requests call
// [Limiter.Adjust].
func (d Decision) SetCost(cost int64) bool {
	if !d.Estimated() || cost < 0 {
		return false
	}
	for {
		was := d.charge.Load()
		if was > latestOpen {
			return false
		}
		if d.charge.CompareAndSwap(was, uint32(min(cost, MaxQuota))+1) {
			return true
		}
	}
}

// The states of a charge, which the copies of a decision share. An open charge is 0 or, after
// SetCost, the cost plus 1.
const (
	latestOpen = MaxQuota + 1
	settled    = latestOpen + iota // by Settle, which changed nothing: Adjust still can
	adjusted                       // by Adjust, before Settle
	final
)

// Estimated reports whether [Decision.SetCost] can settle the decision.
func (d Decision) Estimated() bool { return d.rest != nil && d.rest.estimate }

// Adjust settles the charge of a decision to cost hits for each key, 0 or more. A higher cost
// charges the difference, even above the quota. A lower cost refunds the difference, except hits
// that have left their window. A charge is adjusted once: later calls, for any copy of the
// decision, do nothing.
//
// For a decision of Check, a cost of 0 before Settle refunds everything. Another cost changes only
// rules with a [Rule.Cost]. Before Settle, Adjust acts as [Decision.SetCost]: the last call counts.
// After Settle, it acts at once, unless Settle has changed the charge. A stream that outlives its
// handler calls Adjust.
//
// If the error wraps [ErrNotCharged], Adjust may be called again. Otherwise the difference may have
// been charged or refunded. The end of ctx does not stop the adjustment.
func (l *Limiter) Adjust(ctx context.Context, d Decision, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("%w: limiter %q: cost %d: must be 0 or more", ErrConfig, l.Name(), cost)
	}
	if d.charge == nil || !d.direct && cost > 0 && (!d.Estimated() || d.SetCost(cost)) {
		return nil
	}
	var was, next uint32
	for done := false; !done; done = d.charge.CompareAndSwap(was, next) {
		switch was = d.charge.Load(); was {
		case adjusted, final:
			return nil
		case settled:
			next = final
		default:
			next = adjusted
		}
	}
	part := func(_ int, it decided) bool { return was != settled || d.snap.rules[it.rule].Cost != nil }
	err := l.adjust(context.WithoutCancel(ctx), &d, min(cost, MaxQuota), part, false)
	if errors.Is(err, ErrNotCharged) {
		d.charge.CompareAndSwap(next, was)
	}
	return err
}

// adjust settles the items for which part returns true to a cost. If panicked is true, it refunds
// nothing: the cost set before the panic may be too low.
func (l *Limiter) adjust(ctx context.Context, d *Decision, cost int64, part func(i int, it decided) bool, panicked bool) error {
	changed, err := l.change(ctx, d, OpCharge, func(i int, it decided) int64 { return only(part(i, it), cost-it.cost) })
	if err != nil || panicked {
		return err
	}
	_, err = l.change(ctx, d, OpRefund, func(i int, it decided) int64 { return only(part(i, it), it.cost-cost) })
	if changed && err != nil {
		return fmt.Errorf("giving back, after the charge of other keys: %v", err) //nolint:errorlint // not ErrNotCharged: a second call would charge them again
	}
	return err
}

// change runs an operation on the items for which cost returns more than 0.
func (l *Limiter) change(ctx context.Context, d *Decision, op Op, cost func(i int, it decided) int64) (changed bool, err error) {
	c := l.session(d.snap)
	defer l.release(c)
	c.recall(d, cost)
	if len(c.batch.Items) == 0 {
		return false, nil
	}
	err = c.do(ctx, op)
	if err != nil {
		c.reportStore(ctx, op.String(), err)
	}
	if op != OpCharge {
		l.lines.freed(c.snap, c.batch.Items)
	}
	return true, err
}

// Settle implements [Checker]. It refunds the rules whose Counts returns false, resets the keys of
// the rules whose Clears returns true, and settles the rest to the cost of [Decision.SetCost].
func (l *Limiter) Settle(r Request, d Decision, o Outcome) {
	if d.rest == nil || !d.rest.outcome {
		return
	}
	if was := d.charge.Load(); was == settled || was == final {
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
	var was, next uint32
	for done := false; !done; done = d.charge.CompareAndSwap(was, next) {
		switch was = d.charge.Load(); {
		case was == settled || was == final:
			return
		case was == 0 && !clears && !returns:
			next = settled
		default:
			next = final
		}
	}
	ctx := context.WithoutCancel(r.Context()) // the errors below are logged
	if clears {
		// A reset has no cost: 1 selects the item.
		_, _ = l.change(ctx, &d, OpReset, func(i int, _ decided) int64 { return only(fates[i] == cleared, 1) })
	}
	if was == adjusted {
		return // everything has been refunded
	}
	if returns {
		_, _ = l.change(ctx, &d, OpRefund, func(i int, it decided) int64 { return only(fates[i] == returned, it.cost) })
	}
	if was > 0 {
		estimated := func(i int, it decided) bool { return fates[i] == kept && d.snap.rules[it.rule].Cost != nil }
		_ = l.adjust(ctx, &d, int64(was)-1, estimated, o.Panicked)
	}
}

// fate is what Settle does with an item.
type fate uint8

const (
	kept fate = iota
	cleared
	returned
)

// only returns n if yes is true, else 0.
func only(yes bool, n int64) int64 {
	if yes {
		return n
	}
	return 0
}
