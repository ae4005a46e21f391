package synced

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// With Interval 0 there is nothing between a decision and the backend: hits are
// added, and refunded if the totals then turn out to be too high. So no more
// hits are ever admitted than a limit allows. Of several decisions at the same
// moment, near the limit, all may be denied.

// through is the places of a batch without the table.
func (b *bound) through(items []core.Item, now int64) []place {
	var all []place
	for i := range items {
		limits := b.rules[items[i].Rule].limits
		for j := range limits {
			all = append(all, place{limit: &limits[j], item: &items[i], index: j, start: limits[j].windows.Start(now)})
		}
	}
	return all
}

// counts is the hits of a window and of the one before.
type counts struct{ current, previous int64 }

// diffsOf returns the differences that change a place's counters by n: for each
// window the hits, then the refunds.
func (b *bound) diffsOf(p *place, n counts) [4]Diff {
	names := b.newEntry(p)
	length := time.Duration(names.window) * time.Microsecond
	current, previous := micros(p.start), micros(p.start-names.window)
	return [4]Diff{
		{names.name(false), length, current, max(0, n.current)},
		{names.name(true), length, current, min(0, n.current)},
		{names.name(false), length, previous, max(0, n.previous)},
		{names.name(true), length, previous, min(0, n.previous)},
	}
}

// push changes the counters of each place and returns their counts after that.
func (b *bound) push(ctx context.Context, places []place, now int64, change func(i int) counts) ([]counts, error) {
	if b.closed.Load() {
		return nil, b.errClosed()
	}
	// A charge is not lost because the client has hung up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Timeout)
	defer cancel()
	batch := Batch{Namespace: b.config.Namespace, Node: b.node, At: micros(now)}
	for i := range places {
		diffs := b.diffsOf(&places[i], change(i))
		batch.Diffs = append(batch.Diffs, diffs[:]...)
	}
	totals, err := b.backend.PushDiffs(ctx, batch)
	if err == nil && len(totals) != len(batch.Diffs) {
		err = fmt.Errorf("the backend returned %d totals for %d differences", len(totals), len(batch.Diffs))
	}
	if err != nil {
		b.stats.failed.Add(1)
		return nil, fmt.Errorf("synced: %w", err)
	}
	b.stats.exchanges.Add(1)
	all := make([]counts, len(places))
	for i := range all {
		t := totals[4*i : 4*i+4]
		all[i] = counts{t[0] + t[1], t[2] + t[3]}
	}
	return all, nil
}

func none(int) counts { return counts{} }

func (b *bound) takeThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	batch.Allowed = true
	for i := range places { // what costs more than the whole quota need not be asked for
		p := &places[i]
		p.item.At = now
		batch.Allowed = p.judgeCounts(now, counts{}, true).Allowed && batch.Allowed
	}
	charged := batch.Allowed && batch.Op == core.OpTake
	own := func(i int) int64 {
		if !charged {
			return 0
		}
		return min(places[i].item.Cost, core.MaxQuota)
	}
	found, err := b.push(ctx, places, now, func(i int) counts { return counts{own(i), 0} })
	if err != nil {
		return err
	}
	before := func(i int) counts { return counts{found[i].current - own(i), found[i].previous} }
	for i := range places {
		batch.Allowed = places[i].judgeCounts(now, before(i), true).Allowed && batch.Allowed
	}
	if !charged {
		return nil
	}
	if !batch.Allowed {
		_, err := b.push(ctx, places, now, func(i int) counts { return counts{-own(i), 0} })
		return err
	}
	for i := range places {
		places[i].judgeCounts(now, before(i), false)
	}
	return b.trim(ctx, places, now, found)
}

func (b *bound) refundThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	found, err := b.push(ctx, places, now, none)
	if err != nil {
		return err
	}
	return b.giveBack(ctx, places, now, func(i int) counts {
		p := &places[i]
		switch p.limit.windows.Start(p.item.At) {
		case p.start:
			return counts{min(p.item.Cost, max(0, found[i].current)), 0}
		case p.start - p.limit.windows.Window():
			return counts{0, min(p.item.Cost, max(0, found[i].previous))}
		}
		return counts{}
	})
}

func (b *bound) resetThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	found, err := b.push(ctx, places, now, none)
	if err != nil {
		return err
	}
	return b.giveBack(ctx, places, now, func(i int) counts {
		return counts{max(0, found[i].current), max(0, found[i].previous)}
	})
}

// giveBack refunds hits of each place. Between the read of the counters and the
// push another process may have refunded the same hits, for example if both
// reset a key at the same moment. Refunds beyond the hits are then turned into
// hits again: see slot.tooMuch. Until that is pushed, too many hits may be
// admitted.
func (b *bound) giveBack(ctx context.Context, places []place, now int64, hits func(i int) counts) error {
	found, err := b.push(ctx, places, now, func(i int) counts {
		n := hits(i)
		return counts{-n.current, -n.previous}
	})
	if err != nil {
		return err
	}
	tooMuch := func(i int) counts {
		n := hits(i)
		return counts{max(0, min(n.current, -found[i].current)), max(0, min(n.previous, -found[i].previous))}
	}
	for i := range places {
		if tooMuch(i) != (counts{}) {
			_, err = b.push(ctx, places, now, tooMuch)
			return err
		}
	}
	return nil
}

// rateThrough reads the hits of both windows. Hits of Increment are never
// refunded, so that there are no refunds to read.
func (b *bound) rateThrough(ctx context.Context, p *place, now, diff int64) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, b.config.Timeout)
	defer cancel()
	var found [2]int64
	diffs := b.diffsOf(p, counts{})
	for i := range found {
		d := &diffs[2*i]
		n, err := b.backend.Window(ctx, b.config.Namespace, d.Key, d.Start, d.Window)
		if err != nil {
			return 0, fmt.Errorf("synced: %w", err)
		}
		found[i] = n
	}
	return rate(p, now, found[0]+diff, found[1]), nil
}
