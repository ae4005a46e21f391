package resilient

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
)

// record charges in this process, afterwards, hits that the store has charged
// and that this process has denied. If there is no room for them, they may have
// to wait: the process also counts hits for which other requests are asking the
// store, and refunds those that the store denies. When no request asks, what is
// left of the hits is forgotten: the share of this process is used up.
func (o *owed) record(own *mirror) {
	for i := range own.items {
		it := &own.items[i]
		if it.Cost == 0 {
			continue
		}
		s, id := o.asking.shard(o.ids[it.Rule], it.Key)
		s.mu.Lock()
		own.batch.Items = own.items[i : i+1]
		missed := o.charge(&own.batch, it.Cost)
		if j := s.find(id); j >= 0 {
			s.keys[j].missed += missed
			s.change(id, askedHits{})
		}
		s.mu.Unlock()
	}
	own.batch.Items = own.items
}

// makeUp charges hits that the process has missed of an item's key. It returns
// how many are still missed. The key's shard of asking is locked.
func (o *owed) makeUp(it *core.Item, missed int64) int64 {
	one := core.Batch{Items: []core.Item{{Rule: it.Rule, Key: it.Key, Results: make([]core.Result, len(it.Results))}}}
	return o.charge(&one, missed)
}

// charge charges in this process as many of the hits as fit to the one item of a
// batch. It returns how many do not fit. The key's shard of asking is locked, so
// that a payment that counts the hits also learns that the store knows them.
func (o *owed) charge(one *core.Batch, hits int64) int64 {
	it := &one.Items[0]
	it.Cost = hits
	for range payTries {
		if o.local.Take(context.Background(), one) != nil {
			break // closed
		}
		if one.Allowed {
			if !o.none() {
				o.know(it)
			}
			return hits - it.Cost
		}
		for _, r := range it.Results {
			it.Cost = min(it.Cost, r.Remaining)
		}
		if it.Cost <= 0 {
			break
		}
	}
	return hits
}
