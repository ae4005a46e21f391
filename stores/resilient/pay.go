package resilient

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// pay charges each limit of the claimed keys with the hits that it owes. If
// they do not fit, it charges as many as fit, which uses up the key's quota.
func (b *bound) pay(ctx context.Context, claims []*claim) error {
	// A cost of 0 asks for the counts alone: no cache remembers a denial of it.
	counts := &core.Batch{Peek: true, Items: make([]core.Item, len(claims))}
	for i, c := range claims {
		counts.Items[i] = core.Item{Rule: c.index, Key: c.name, Results: make([]core.Result, b.limits(c.index))}
	}
	if err := b.call(ctx, b.inner, counts, core.Bound.Take); err != nil {
		return err
	}
	byLimit, together, most := make([][]int64, len(claims)), make([]int64, len(claims)), 0
	for i, c := range claims {
		byLimit[i], together[i] = b.owes(c, counts.Items[i].Results)
		most = max(most, len(byLimit[i]))
	}
	for j := range most {
		payer, err := b.payers.of(b, j)
		if err != nil {
			return fmt.Errorf("resilient: %w", err)
		}
		if payer == nil {
			return b.charge(ctx, b.inner, b.limits, claims, together)
		}
		var some []*claim
		var hits []int64
		for i, c := range claims {
			if j < len(byLimit[i]) {
				some, hits = append(some, c), append(hits, byLimit[i][j])
			}
		}
		if err := b.charge(ctx, payer, func(int) int { return 1 }, some, hits); err != nil {
			return err
		}
	}
	return nil
}

// limits returns how many limits a rule has.
func (b *bound) limits(rule int) int { return len(b.rules[rule].Limits) }

// owes returns how many hits a claim's key owes to each limit, and how many
// hits it owes if all limits must be charged with the same number.
//
// A limit owes the hits for which the store was not asked, but at most as many
// as this process still counts in it: hits that have left a short window are
// not charged to it again. If the store counts fewer hits than this process,
// the limit owes at least the difference: hits whose charge failed, and hits
// that the store has lost.
func (b *bound) owes(c *claim, stored []core.Result) (byLimit []int64, together int64) {
	least := int64(core.MaxQuota)
	for j, l := range b.rules[c.index].Limits {
		room := stored[j].Remaining
		lost := c.used[j] - (l.Capacity() - room)
		hits := min(room, max(min(c.sure, c.used[j]-c.known), lost, 0))
		byLimit = append(byLimit, hits)
		together, least = max(together, hits), min(least, room)
	}
	return byLimit, min(together, least)
}

// countTries is how often the hits of a key are counted if requests for the key
// come in between.
const countTries = 8

// count counts the hits of each limit of a claim's key in this process. It
// leaves out hits for which requests are asking the store at this moment: the
// requests charge these.
func (b *bound) count(ctx context.Context, c *claim) error {
	results := make([]core.Result, b.limits(c.index))
	batch := &core.Batch{Peek: true, Items: []core.Item{{Rule: c.index, Key: c.name, Results: results}}}
	c.used = make([]int64, len(results))
	for range countTries {
		before := b.owed.look(c)
		if err := b.local.Take(ctx, batch); err != nil {
			return err
		}
		for j, l := range b.shares[c.index].Limits {
			c.used[j] = l.Capacity() - results[j].Remaining
		}
		if before.charging != 0 || before != b.owed.look(c) {
			continue
		}
		for j := range c.used {
			c.used[j] = max(c.used[j]-before.charged-before.later, 0)
		}
		c.known = before.known
		return nil
	}
	return nil // a hit that is charged twice is better than one that is not charged
}

// payTries is how often a charge is tried that does not fit because others take
// hits of the same key at the same moment.
const payTries = 3

// charge charges hits to the claimed keys in one operation. If they do not fit,
// each key is charged by itself, with as many hits as fit. Claims without hits
// are left out, and so are keys that have been reset since they were claimed.
// limits returns how many limits of a rule the payer is bound to.
func (b *bound) charge(ctx context.Context, payer core.Bound, limits func(rule int) int, claims []*claim, hits []int64) error {
	batch := &core.Batch{}
	var charged []*claim
	for i, c := range claims {
		if hits[i] <= 0 || b.owed.isReset(c) {
			continue
		}
		charged = append(charged, c)
		batch.Items = append(batch.Items, core.Item{Rule: c.index, Key: c.name, Cost: hits[i], Results: make([]core.Result, limits(c.index))})
	}
	if len(charged) == 0 {
		return nil
	}
	if err := b.chargeOnce(ctx, payer, charged, batch); err != nil || batch.Allowed {
		return err
	}
	for i := range batch.Items {
		if err := b.chargeFitting(ctx, payer, charged[i:i+1], batch.Items[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// chargeFitting charges as many hits as fit to the one key of a charge that has
// been denied.
func (b *bound) chargeFitting(ctx context.Context, payer core.Bound, one []*claim, items []core.Item) error {
	it := &items[0]
	for range payTries {
		if !it.Unknown {
			for _, r := range it.Results {
				it.Cost = min(it.Cost, r.Remaining)
			}
		}
		if it.Cost <= 0 {
			return nil
		}
		it.Unknown = false
		batch := core.Batch{Items: items}
		if err := b.chargeOnce(ctx, payer, one, &batch); err != nil || batch.Allowed {
			return err
		}
	}
	return nil
}

// chargeOnce asks the store for a charge, and notes which claims the store has
// charged or may have charged.
func (b *bound) chargeOnce(ctx context.Context, payer core.Bound, claims []*claim, batch *core.Batch) error {
	err := b.call(ctx, payer, batch, core.Bound.Take)
	if !notCharged(err) {
		for _, c := range claims {
			c.asked = true
		}
	}
	return err
}
