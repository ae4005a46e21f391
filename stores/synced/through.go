package synced

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// With Interval 0 there is nothing between a decision and the backend: hits are
// added, and given back where the totals then turn out to be too many. So no
// more are ever admitted than a limit says; of several decisions at the same
// moment, around the limit, all may be refused.

// through is the places of a batch without the table.
func (b *bound) through(items []core.Item, now int64) []place {
	var all []place
	for i := range items {
		limits := b.rules[items[i].Rule].limits
		for j := range limits {
			all = append(all, place{limit: &limits[j], item: &items[i], index: j, start: limits[j].meter.Start(now)})
		}
	}
	return all
}

// push pushes a difference of each place's current and previous window and
// returns the totals, in pairs.
func (b *bound) push(ctx context.Context, places []place, now int64, diffs func(p *place) (current, previous int64)) ([]int64, error) {
	// A charge is not lost because the client has hung up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Timeout)
	defer cancel()
	batch := Batch{Namespace: b.config.Namespace, Node: b.node, At: micros(now)}
	for i := range places {
		p := &places[i]
		name, window := b.stored(p), p.limit.meter.Window()
		current, previous := diffs(p)
		length := time.Duration(window) * time.Microsecond
		batch.Diffs = append(batch.Diffs,
			Diff{name, length, micros(p.start), current},
			Diff{name, length, micros(p.start - window), previous})
	}
	totals, err := b.backend.PushDiffs(ctx, batch)
	if err == nil && len(totals) != len(batch.Diffs) {
		err = fmt.Errorf("the backend gave %d totals for %d differences", len(totals), len(batch.Diffs))
	}
	if err != nil {
		b.stats.failed.Add(1)
		return nil, fmt.Errorf("synced: %w", err)
	}
	b.stats.exchanges.Add(1)
	return totals, nil
}

func (b *bound) takeThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	charged := !batch.Peek
	batch.Allowed = true
	for i := range places { // what costs more than the whole quota need not be asked for
		p := &places[i]
		p.item.At = now
		r := p.limit.meter.Judge(now, 0, 0, p.item.Cost)
		p.item.Results[p.index] = r
		batch.Allowed = batch.Allowed && r.Allowed
	}
	charged = charged && batch.Allowed
	own := func(p *place) int64 {
		if !charged {
			return 0
		}
		return p.item.Cost
	}
	totals, err := b.push(ctx, places, now, func(p *place) (int64, int64) { return own(p), 0 })
	if err != nil {
		return err
	}
	for i := range places {
		p := &places[i]
		r := p.limit.meter.Judge(now, totals[2*i]-own(p), totals[2*i+1], p.item.Cost)
		p.item.Results[p.index] = r
		batch.Allowed = batch.Allowed && r.Allowed
	}
	if !charged {
		return nil
	}
	if !batch.Allowed {
		_, err := b.push(ctx, places, now, func(p *place) (int64, int64) { return -own(p), 0 })
		return err
	}
	for i := range places {
		p := &places[i]
		p.item.Results[p.index] = p.limit.meter.Judge(now, totals[2*i], totals[2*i+1], 0)
	}
	return nil
}

func (b *bound) refundThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	totals, err := b.push(ctx, places, now, func(*place) (int64, int64) { return 0, 0 })
	if err != nil {
		return err
	}
	i := 0
	_, err = b.push(ctx, places, now, func(p *place) (int64, int64) {
		i += 2
		switch p.limit.meter.Start(p.item.At) {
		case p.start:
			return -min(p.item.Cost, max(0, totals[i-2])), 0
		case p.start - p.limit.meter.Window():
			return 0, -min(p.item.Cost, max(0, totals[i-1]))
		}
		return 0, 0
	})
	return err
}

func (b *bound) resetThrough(ctx context.Context, batch *core.Batch) error {
	now := b.now()
	places := b.through(batch.Items, now)
	totals, err := b.push(ctx, places, now, func(*place) (int64, int64) { return 0, 0 })
	if err != nil {
		return err
	}
	i := 0
	_, err = b.push(ctx, places, now, func(*place) (int64, int64) {
		i += 2
		return -totals[i-2], -totals[i-1]
	})
	return err
}
