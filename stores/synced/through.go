package synced

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
)

// emptyPlaces returns the places of the items, with new counters that are not in the table.
func (c *counters) emptyPlaces(items []core.Item, now int64) []place {
	places := c.places(nil, items)
	for i := range places {
		places[i].entry = c.newEntry(&places[i], now)
	}
	return places
}

// push pushes the differences of the places of emptyPlaces, and writes the totals into them.
func (c *counters) push(ctx context.Context, places []place) error {
	if c.closed.Load() {
		return errClosed
	}
	diffs := make([]Diff, 0, 2*len(places))
	for i := range places {
		e := places[i].entry
		diffs = append(diffs, e.diff(e.start), e.diff(e.start-e.window))
	}
	// A charge is not lost because the client has hung up.
	totals, err := c.pushDiffs(context.WithoutCancel(ctx), 0, diffs)
	if err != nil {
		return err
	}
	for i := range places {
		e := places[i].entry
		e.current, e.previous = slot{known: totals[2*i]}, slot{known: totals[2*i+1]}
	}
	return nil
}

// through does an operation with Interval 0: it adds the hits, and gives them back if the
// totals are then too high. So no limit is ever exceeded, and near the limit several decisions
// at the same moment may all be denied.
func (c *counters) through(ctx context.Context, b *core.Batch) error {
	now := c.now()
	places := c.emptyPlaces(b.Items, now)
	if b.Op == core.OpRefund {
		for i := range places {
			if s := places[i].entry.at(places[i].charged()); s != nil {
				s.diff = -places[i].item.Cost
			}
		}
		return c.push(ctx, places)
	}
	charged := make([]int64, len(places))
	if b.Op == core.OpCharge || b.Op == core.OpTake && decide(core.OpPeek, places, now) { // else it costs more than a quota
		for i := range places {
			charged[i] = min(places[i].item.Cost, core.MaxQuota)
			places[i].entry.current.diff = charged[i]
		}
	}
	if err := c.push(ctx, places); err != nil {
		return err
	}
	for i := range places {
		places[i].entry.current.known -= charged[i]
	}
	b.Allowed = decide(b.Op, places, now)
	tooMuch := false
	for i := range places {
		s := &places[i].entry.current
		s.diff -= charged[i] // if it is allowed, 0 or the hits above the highest count
		tooMuch = tooMuch || s.diff < 0
	}
	if !tooMuch {
		return nil
	}
	return c.push(ctx, places)
}

// reset makes the totals of the items' keys 0 in the backend, and forgets what this
// process knows. If the backend does not answer, it changes nothing.
func (c *counters) reset(ctx context.Context, b *core.Batch) error {
	now := c.now()
	if c.config.Interval >= 0 {
		places := c.emptyPlaces(b.Items, now)
		for i := range places {
			places[i].entry.current.diff, places[i].entry.previous.diff = Forget, Forget
		}
		if err := c.push(ctx, places); err != nil || c.config.Interval == 0 {
			return err
		}
	}
	places := c.places(nil, b.Items)
	if err := c.lock(places, now, false); err != nil {
		return err
	}
	defer c.unlock(places)
	for i := range places {
		places[i].entry.current, places[i].entry.previous = slot{}, slot{}
	}
	return nil
}
