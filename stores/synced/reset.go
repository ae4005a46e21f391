package synced

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// reset reads the totals of the keys from the
// backend, even if this process has not used the keys, and forgets all hits
// known then. If processes reset a key at the same moment, its hits are given
// back once: refunds beyond that are turned into hits again at once, unless the
// process ends before. Other processes learn of the reset with their next
// exchange; hits that they have not pushed by then stay. If the totals cannot
// be read, reset returns the backend's error, and forgets only the hits that
// this process knew before.
func (b *bound) reset(ctx context.Context, batch *core.Batch) error {
	if b.closed.Load() {
		return b.errClosed()
	}
	var totals []total
	var failed error
	now := b.now()
	if b.config.Interval > 0 {
		totals, failed = b.totals(ctx, batch.Items, now)
	}
	k := b.lock(batch.Items, now)
	if k == nil {
		return b.errClosed()
	}
	for i := range totals {
		t, p := &totals[i], &k.places[i/readsOfPlace]
		if p.entry == nil && t.value != 0 {
			p.entry = b.newEntry(p)
			b.table.insert(&b.table.shards[p.id.shard()], p.id, p.entry, now, k.places)
		}
		if p.entry == nil {
			continue
		}
		if s := p.entry.at(t.start); s != nil && (t.value != 0 || !t.back) {
			s.heard(t.back, t.value)
		}
	}
	for i := range k.places {
		p := &k.places[i]
		if p.entry == nil {
			continue
		}
		for _, s := range []*slot{&p.entry.current, &p.entry.previous} {
			s.take(s.count())
		}
		b.use(p)
	}
	b.unlock(k)
	return failed
}

// total is what the backend has of one counter.
type total struct {
	start int64
	back  bool
	value int64
}

// readsOfPlace is how many counters a limit of an item has: see diffsOf.
const readsOfPlace = 4

// totals reads the counters of the items, four for each limit of each item.
func (b *bound) totals(ctx context.Context, items []core.Item, now int64) ([]total, error) {
	ctx, cancel := context.WithTimeout(ctx, b.config.Timeout)
	defer cancel()
	places := b.through(items, now)
	all := make([]total, 0, readsOfPlace*len(places))
	for i := range places {
		diffs := b.diffsOf(&places[i], counts{})
		// Of each window the hits come before the refunds: a refund in between
		// makes the count too low, so that no hit is given back twice.
		for j := range diffs {
			d := &diffs[j]
			n, err := b.backend.Window(ctx, b.config.Namespace, d.Key, d.Start, d.Window)
			if err != nil {
				return nil, fmt.Errorf("synced: %w", err)
			}
			all = append(all, total{d.Start.UnixMicro(), j%2 == 1, n})
		}
	}
	return all, nil
}
