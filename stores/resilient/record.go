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
		if it.Cost != 0 {
			own.batch.Items = own.items[i : i+1]
			o.recordOne(&own.batch)
		}
	}
	own.batch.Items = own.items
}

// recordOne is record for the one item of a batch.
func (o *owed) recordOne(one *core.Batch) {
	it := &one.Items[0]
	s, id := o.asking.shard(o.ids[it.Rule], it.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := o.charge(one, hits(it))
	if j := s.find(id); j >= 0 {
		s.keys[j].missed += missed
		s.change(id, askedHits{})
	}
}

// noteDenied notes the keys for which this process has denied a batch while the
// store was gone. They owe no hit of the outage. But the store may come back
// empty: a payment then charges the hits that the process still counts. noteDenied
// reports whether there is a key to pay that was not noted before.
func (o *owed) noteDenied(where Locator, batch *core.Batch) (due bool) {
	for i := range batch.Items {
		if it := &batch.Items[i]; denies(it) && o.noteUsedUp(where, it) {
			due = true
		}
	}
	return due
}

func (o *owed) noteUsedUp(where Locator, it *core.Item) bool {
	until := it.At
	for _, r := range it.Results {
		until = max(until, it.At+r.ResetAfter.Microseconds())
	}
	if until == it.At || !o.counts(it.Rule) {
		return false // a quota of 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.key(it)
	if o.paying[k] != nil || o.debts[k].until > it.At {
		return false
	}
	server := ""
	if where != nil {
		server = where.ServerOf(it.Rule, it.Key)
	}
	return o.add(k, debt{until: until, plan: newPlan(o.rules[it.Rule].Limits, it.Quotas)}, server, true, it.At)
}

// misses reports whether the process has charged a batch and misses hits of one of
// its keys.
func (o *owed) misses(own *mirror) bool {
	missed := int64(0)
	for i := range own.items {
		if it := &own.items[i]; own.charged() && it.Cost > 0 {
			o.asking.look(o.ids[it.Rule], it.Key, func(k askedKey) { missed += k.missed })
		}
	}
	return missed > 0
}

// makeUp charges hits that the process has missed of an item's key. It returns
// how many are still missed. The key's shard of asking is locked.
func (o *owed) makeUp(it *core.Item, missed int64) int64 {
	one := core.Batch{Items: []core.Item{{Rule: it.Rule, Key: it.Key, Quotas: it.Quotas, Results: make([]core.Result, len(it.Results))}}}
	return o.charge(&one, missed)
}

// charge charges in this process as many of the hits as fit to the one item of a
// batch. It returns how many do not fit. The key's shard of asking is locked, so
// that a payment that counts the hits also learns that the store knows them.
func (o *owed) charge(one *core.Batch, hits int64) int64 {
	it := &one.Items[0]
	if !o.counts(it.Rule) {
		return 0
	}
	lease := o.leases[it.Rule]
	if lease >= 0 { // leases are not hits: they have been noted already
		quotas, was := o.withoutLeases(it), *it
		it.Quotas, it.Lease = quotas, 0
		defer func() { it.Quotas, it.Lease = was.Quotas, was.Lease }()
	}
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
		for i, r := range it.Results {
			if i != lease {
				it.Cost = min(it.Cost, r.Remaining)
			}
		}
		if it.Cost <= 0 {
			break
		}
	}
	return hits
}

// withoutLeases returns the quotas of an item's limits in this process, with which its limit of
// leases denies nothing.
func (o *owed) withoutLeases(it *core.Item) []int64 {
	var quotas []int64
	for i, l := range o.shares[it.Rule].Limits {
		switch {
		case i == o.leases[it.Rule]:
			quotas = append(quotas, core.Unlimited)
		case it.Quotas != nil:
			quotas = append(quotas, it.Quotas[i])
		default:
			quotas = append(quotas, l.Quota)
		}
	}
	return quotas
}
