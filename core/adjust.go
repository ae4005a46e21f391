package core

import (
	"context"
	"errors"
	"fmt"
)

// SetCost sets the actual cost of the request, in hits, once it is known: the tokens
// of an answer, or the rows that were read. What was charged before the handler is
// then an estimate. After the handler has returned, the limiter charges what is
// missing, even above the quota, or gives back what is too much. If nobody sets the
// cost, the estimate stays. If the handler panics, the limiter charges what is missing
// and gives nothing back: httputil.ReverseProxy panics if the client hangs up.
//
// What is above a quota is a debt: the key waits until the algorithm has forgotten
// it. Windows forget hits when they end. A TokenBucket owes at most twice its Burst,
// and a SlidingLog keeps at most its Quota.
//
// SetCost settles the rules that have a Cost, and no others: Hooks.Cost is no
// estimate. If no rule that applies has one, SetCost does nothing and returns false. It
// also returns false if the decision has charged nothing, if it has been settled or
// adjusted, and if cost is negative.
//
// The last call before the handler returns counts. SetCost may be called
// concurrently. A cost above MaxQuota means MaxQuota.
//
// Handlers use the SetCost of their adapter. A program without requests uses
// [Limiter.Adjust].
func (d Decision) SetCost(cost int64) bool {
	r := d.record
	if r == nil || !r.estimate || cost < 0 || r.settled.Load() || r.adjusted.Load() {
		return false
	}
	r.said.Store(min(cost, MaxQuota) + 1)
	return true
}

// Estimated reports whether SetCost settles what the request was charged.
func (d outcomes) Estimated() bool {
	return d.record.estimates()
}

func (r *record) estimates() bool { return r != nil && r.estimate }

// Adjust settles what the decision of a Take has charged for each of its keys to
// cost, in hits. If cost is more, the difference is charged, even above the quotas. If
// it is less, the difference is given back into the window that it came from, as far as
// the hits have not left it: no counter falls below zero. A cost of 0 gives everything back.
// A decision whose Reason is not ReasonWithinLimits has charged nothing, and Adjust does
// nothing. cost is 0 or more; a cost above MaxQuota means MaxQuota.
//
// Of the decision of a Check, Adjust settles the rules that [Decision.SetCost]
// settles. Before Settle, which an adapter calls after the handler, Adjust does what
// SetCost does, but a cost of 0 gives the hits of all rules back at once. After Settle, it
// charges or gives back at once, unless SetCost was called before. So a stream that
// outlives its handler calls Adjust.
//
// Call it at most once for a decision: a Decision is a value, and the limiter does not keep
// track of its copies. Adjust acts on the limiter that has made the decision. The error
// wraps ErrNegativeCost, or it is the store's: then the difference may have been charged or
// given back, unless the error wraps [ErrNotCharged]. The charge is not lost if ctx ends.
func (l *Limiter) Adjust(ctx context.Context, d Decision, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("limiter %q: cost %d: %w", l.Name(), cost, ErrNegativeCost)
	}
	if d.detail.snap == nil || d.Rule == "" || d.Reason != ReasonWithinLimits || cost == 0 && !d.marks.charged {
		return nil
	}
	r, wanted := d.record, func(int) bool { return true }
	ofRequest := !d.decidingItem().hit
	refund := ofRequest && cost == 0 && (r == nil || !r.settled.Load())
	if ofRequest && !refund {
		if r == nil || !r.estimate || d.SetCost(cost) && !r.settled.Load() {
			return nil // Settle will do it, or the request was not weighed
		}
		wanted = r.settlesTo(d.detail.snap)
	}
	if r != nil && (!r.adjusted.CompareAndSwap(false, true) || refund && r.settled.Load()) {
		return nil // the second condition: Settle has begun meanwhile
	}
	err := l.adjust(context.WithoutCancel(ctx), &d, min(cost, MaxQuota), wanted)
	if r != nil && errors.Is(err, ErrNotCharged) {
		r.adjusted.Store(false)
	}
	return err
}

// adjust settles the items for which want returns true, by their place in the record.
func (l *Limiter) adjust(ctx context.Context, d *Decision, cost int64, want func(i int) bool) error {
	more := func(it recordedItem) int64 { return cost - it.cost }
	less := func(it recordedItem) int64 { return it.cost - cost }
	bound := d.detail.snap.bound
	return errors.Join(l.change(ctx, d, want, more, "charge", bound.Charge), l.change(ctx, d, want, less, "refund", bound.Refund))
}

// change does op with the items that are wanted and whose part is above 0, for that many
// hits of each.
func (l *Limiter) change(ctx context.Context, d *Decision, want func(i int) bool, part func(recordedItem) int64, name string, op func(context.Context, *Batch) error) error {
	wanted := make([]bool, d.recordedItems())
	parts := make([]int64, 0, len(wanted))
	var fates []fate
	if r := d.record; r != nil && r.fates.Load() != nil {
		fates = *r.fates.Load()
	}
	for i := range wanted {
		if fates != nil && fates[i] != kept {
			continue
		}
		if n := part(d.recordedItem(i)); n > 0 && want(i) {
			wanted[i], parts = true, append(parts, n)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	c := l.session(d.detail.snap)
	defer l.release(c, nil)
	c.recall(d, func(i int) bool { return wanted[i] })
	for i, n := range parts {
		c.items[i].Cost = n
	}
	err := c.snap.run(ctx, name, &c.batch, op)
	if err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, name, err)
	}
	if name == "refund" {
		l.freed(c.snap, c.items)
	}
	return err
}

// recordedItems returns how many items the decision has.
func (d *Decision) recordedItems() int {
	if d.record != nil {
		return len(d.record.items)
	}
	return 1
}

func (d *Decision) recordedItem(i int) recordedItem {
	if d.record != nil {
		return d.record.items[i]
	}
	return d.decidingItem()
}

// estimates reports whether what the request was charged is an estimate, which SetCost settles.
func (c *session) estimates() bool {
	for i := range c.items {
		if c.snap.rules[c.items[i].Rule].Cost != nil {
			return true
		}
	}
	return false
}

// settlesTo returns for which items of a record the actual cost counts: those of rules with
// a Cost.
func (r *record) settlesTo(s *snapshot) func(i int) bool {
	return func(i int) bool { return s.rules[r.items[i].rule].Cost != nil }
}
