package core

import (
	"context"
	"errors"
	"fmt"
)

// SetCost says what the request has really cost, in hits, once that is known: the tokens of an
// answer, the rows that were read. What the request was charged is then an estimate. When
// the handler has returned, more than that is charged, whatever is left of the quotas,
// and less is given back. What is above a quota is a debt that the key pays off
// by waiting, as long as the algorithm remembers it: until the windows have ended that the hits
// are counted in; of a TokenBucket, at most twice the Burst; of a SlidingLog, at most
// the Quota. If the handler panics, or nobody says the cost, the estimate stays.
//
// The rules with a Cost of their own are settled. If none of the rules that apply has
// one, all of them are settled, provided that the limiter's Hooks have a Cost of their
// own. If neither is so, the request was counted and not weighed: SetCost does nothing and
// returns false. It also returns false if the decision has charged nothing or has been
// settled or refunded, and if cost is negative.
// The last call before the handler returns counts. SetCost may be called
// concurrently.
//
// Handlers use the SetCost of their adapter. A program without requests uses
// [Limiter.Adjust].
func (d Decision) SetCost(cost int64) bool {
	said := false
	if d.detail.shadow != nil {
		said = d.detail.shadow.SetCost(cost)
	}
	r := d.detail.record
	if r == nil || !r.estimate || cost < 0 || r.settled.Load() || r.refunded.Load() {
		return said
	}
	r.said.Store(min(cost, MaxQuota) + 1)
	return true
}

// Estimated reports whether SetCost settles what the request was charged.
func (d Decision) Estimated() bool {
	return d.detail.record != nil && d.detail.record.estimate || d.detail.shadow != nil && d.detail.shadow.Estimated()
}

// Adjust settles what the decision of a Take has charged for each of its keys to
// cost, in hits. More is charged, whatever is left of the quotas; less is given back into
// the window that it came from. A decision that is not within the limits has charged
// nothing, and adjusts nothing.
//
// Of the decision of a Check, the rules are settled that [Decision.SetCost] settles, and if there are none, nothing is
// done. Before Settle, which an adapter calls when the handler has returned, Adjust is SetCost. After it, Adjust charges or gives back at once, if
// nothing was said before: for a stream that outlives its handler.
//
// Call it at most once for a decision, and not after Refund: a Decision is a value, and
// the limiter does not keep track of its copies. The error wraps ErrNegativeCost, or is the store's: then the difference may have
// been charged or given back, unless it wraps [ErrNotCharged].
// The charge is not lost if ctx ends.
func (l *Limiter) Adjust(ctx context.Context, d Decision, cost int64) error {
	if cost < 0 {
		return fmt.Errorf("limiter %q: cost %d: %w", l.Name(), cost, ErrNegativeCost)
	}
	if d.detail.shadow != nil {
		shadow := *d.detail.shadow
		d.detail.shadow = nil
		return errors.Join(l.Adjust(ctx, d, cost), l.Adjust(ctx, shadow, cost))
	}
	if d.detail.snap == nil || d.Rule == "" || d.Reason != ReasonWithinLimits {
		return nil
	}
	r, wanted := d.detail.record, func(int) bool { return true }
	if !d.decidingItem().hit { // of a request
		if r == nil || !r.estimate || d.SetCost(cost) && !r.settled.Load() {
			return nil // Settle will do it, or the request was not weighed
		}
		wanted = r.settlesTo(d.detail.snap)
	}
	if r != nil && (r.refunded.Load() || !r.adjusted.CompareAndSwap(false, true)) {
		return nil
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
	if r := d.detail.record; r != nil && r.fates.Load() != nil {
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
	err := op(ctx, &c.batch)
	if err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, name, err)
	}
	return err
}

// recordedItems returns how many items the decision has.
func (d *Decision) recordedItems() int {
	if d.detail.record != nil {
		return len(d.detail.record.items)
	}
	return 1
}

func (d *Decision) recordedItem(i int) recordedItem {
	if d.detail.record != nil {
		return d.detail.record.items[i]
	}
	return d.decidingItem()
}

// estimates reports whether what the request was charged is an estimate, which SetCost settles.
func (c *session) estimates() bool {
	if c.snap.weighs {
		return true
	}
	for i := range c.items {
		if c.snap.rules[c.items[i].Rule].Cost != nil {
			return true
		}
	}
	return false
}

// settlesTo returns for which items of a record the actual cost counts: those of rules with
// a Cost of their own, or if there are none, all.
func (r *record) settlesTo(s *snapshot) func(i int) bool {
	own := func(i int) bool { return s.rules[r.items[i].rule].Cost != nil }
	for i := range r.items {
		if own(i) {
			return own
		}
	}
	return func(int) bool { return true }
}
