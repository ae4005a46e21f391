package synced

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// windows returns what judges the place's counts for the item: the limit's, or if
// the item has a quota of its own, that of room with this quota. unlimited is true
// if the limit admits everything.
func (p *place) windows(room *meter.Windows) (w *meter.Windows, unlimited bool) {
	w = &p.limit.windows
	if p.item.Quotas == nil {
		return w, false
	}
	switch quota := p.item.Quotas[p.index]; quota {
	case core.Unlimited:
		return w, true
	case p.limit.quota:
		return w, false
	default:
		*room = w.With(quota)
		return room, false
	}
}

// quota returns the quota that decides on the item.
func (p *place) quota() int64 {
	if p.item.Quotas == nil {
		return p.limit.quota
	}
	return p.item.Quotas[p.index]
}

// judgeCharge fills in the limit's result as it is after a charge of the item's
// cost to n hits.
func (p *place) judgeCharge(now int64, n counts) *core.Result {
	var room meter.Windows
	w, _ := p.windows(&room)
	r := &p.item.Results[p.index]
	w.Charge((*meter.Result)(r), p.start, max(now, p.start), n.current, n.previous, p.item.Cost)
	return r
}

// hits returns how many hits a charge of the item's cost adds to a window that
// has count hits: a count stops at core.MaxQuota.
func (p *place) hits(count int64) int64 {
	return min(p.item.Cost, max(0, core.MaxQuota-count))
}

// chargeAll charges a batch whether its limits allow it or not.
func (b *bound) chargeAll(batch *core.Batch) error {
	batch.Degraded = b.reports.either.Load()
	now := b.now()
	k := b.lock(batch.Items, now)
	if k == nil {
		return b.errClosed()
	}
	b.join(k, now, true)
	batch.Allowed = true
	force := false
	for i := range k.places {
		p := &k.places[i]
		p.item.At = now
		n := p.counts()
		left := p.judgeCounts(now, n, true).Remaining
		r := p.judgeCharge(now, n)
		if p.item.Cost > 0 {
			b.charge(k, p, now, p.hits(n.current))
			force = force || p.nearly(left, r)
		}
	}
	b.unlock(k)
	if force {
		b.force()
	}
	return nil
}

// chargeThrough is chargeAll with Interval 0.
func (b *bound) chargeThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	for i := range places {
		places[i].item.At = now
	}
	batch.Allowed = true
	own := func(i int) int64 { return min(places[i].item.Cost, core.MaxQuota) }
	found, err := b.push(ctx, places, now, func(i int) counts { return counts{own(i), 0} })
	if err != nil {
		return err
	}
	for i := range places {
		places[i].judgeCharge(now, counts{found[i].current - own(i), found[i].previous})
	}
	return b.trim(ctx, places, now, found)
}

// trim takes back the hits of a charge that have raised a count above
// core.MaxQuota. found are the counts after the charge.
func (b *bound) trim(ctx context.Context, places []place, now int64, found []counts) error {
	surplus := func(i int) counts {
		return counts{-min(places[i].item.Cost, max(0, found[i].current-core.MaxQuota)), 0}
	}
	for i := range places {
		if surplus(i) != (counts{}) {
			_, err := b.push(ctx, places, now, surplus)
			return err
		}
	}
	return nil
}
