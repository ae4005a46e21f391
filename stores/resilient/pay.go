package resilient

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
)

// pay charges each limit of the claimed keys with the hits that it owes. If limits owe
// different numbers of hits and the store fails between them, the later ones may miss theirs.
func (b *bound) pay(ctx context.Context, claims []*claim) error {
	// A cost of 0 asks for the counts alone: no cache remembers a denial of it.
	counts := &core.Batch{Peek: true, Items: make([]core.Item, len(claims))}
	for i, c := range claims {
		counts.Items[i] = core.Item{Rule: c.index, Key: c.name, Quotas: b.gauges.rules[c.index].quotas, Results: make([]core.Result, b.limits(c.index))}
	}
	if err := b.call(ctx, b.inner, counts, core.Bound.Take); err != nil {
		return err
	}
	byLimit, together, most := make([][]due, len(claims)), make([]due, len(claims)), 0
	for i, c := range claims {
		byLimit[i], together[i] = b.owes(c, counts.Items[i].Results)
		most = max(most, len(byLimit[i]))
	}
	if alike(byLimit) { // one charge: none of the limits can miss it
		return b.charge(ctx, b.inner, claims, together)
	}
	for j := range most {
		payer, err := b.payers.of(b, j)
		if err != nil {
			return fmt.Errorf("resilient: %w", err)
		}
		if payer == nil {
			return b.charge(ctx, b.inner, claims, together)
		}
		var some []*claim
		var dues []due
		for i, c := range claims {
			if j < len(byLimit[i]) {
				some, dues = append(some, c), append(dues, byLimit[i][j])
			}
		}
		if err := b.charge(ctx, payer, some, dues); err != nil {
			return err
		}
	}
	return nil
}

// limits returns how many limits a rule has.
func (b *bound) limits(rule int) int { return len(b.rules[rule].Limits) }

// due is how many hits are to be charged to a limit of a key, or to all of them.
type due struct {
	sure    int64   // hits of the outage, which are charged even if they do not fit
	hits    int64   // all: the rest only as far as they fit, as other instances may restore them too
	quotas  []int64 // with which they are charged; nil: the limits' own
	results int     // how many limits are charged
}

// owes returns how many hits a claim's key owes to each limit, and how many
// hits it owes if all limits must be charged with the same number.
//
// A limit owes the hits for which the store was not asked, but at most as many
// as this process still counts in it: hits that have left a short window are
// not charged to it again. If the store counts fewer hits than this process, the
// limit owes at least the difference. These are hits of the outage that the store may
// have charged and has not, and hits from before it that the store has lost. The hits
// of the outage are charged even if they do not fit, the others only as far as
// they fit.
func (b *bound) owes(c *claim, stored []core.Result) (byLimit []due, together due) {
	limits := b.rules[c.index].Limits
	quotas := c.plan.of(limits)
	sure := c.sure - max(0, c.back-c.unsure)
	var rooms []int64
	leases := false
	for j, l := range limits {
		if l.Algorithm == core.Leases { // it has no hits
			leases = true
			byLimit, rooms = append(byLimit, due{}), append(rooms, core.MaxQuota)
			continue
		}
		quota := l.Quota
		if quotas != nil {
			quota = quotas[j]
		}
		used := b.gauges.rules[c.index].used(j, &stored[j])
		room := max(0, capacity(l, quota)-used)
		lost := c.used[j] - used
		d := due{sure: max(0, min(sure, c.used[j]-c.known), min(lost, c.hits()-c.back)), results: 1}
		d.hits = max(d.sure, min(room, lost))
		if quotas != nil {
			d.quotas = quotas[j : j+1]
		}
		byLimit, rooms = append(byLimit, d), append(rooms, room)
		together.sure, together.hits = max(together.sure, d.sure), max(together.hits, d.hits)
	}
	for j, d := range byLimit { // no limit is overcharged with hits of another
		together.hits = min(together.hits, max(d.hits, rooms[j]))
	}
	together.sure = min(together.sure, together.hits)
	if leases { // a take of the others would need a lease
		together.hits = together.sure
	}
	together.quotas, together.results = quotas, len(limits)
	return byLimit, together
}

// alike reports whether each key owes the same to all its limits, and all of that must be charged.
func alike(byLimit [][]due) bool {
	for _, dues := range byLimit {
		for _, d := range dues {
			if d.hits != d.sure || d.hits != dues[0].hits {
				return false
			}
		}
	}
	return true
}

// countTries is how often the hits of a key are counted if requests for the key
// come in between.
const countTries = 8

// count counts the hits of each limit of a claim's key in this process. It
// leaves out hits for which requests are asking the store at this moment: the
// requests charge these.
func (b *bound) count(ctx context.Context, c *claim) error {
	gauge := &b.gauges.shares[c.index]
	results := make([]core.Result, b.limits(c.index))
	batch := &core.Batch{Items: []core.Item{{Rule: c.index, Key: c.name, Quotas: gauge.quotas, Results: results}}}
	c.used = make([]int64, len(results))
	for range countTries {
		before := b.owed.look(c)
		// A charge of 0 hits changes nothing. Other than a Take, it shows what a blocked key has counted.
		if err := b.local.Charge(ctx, batch); err != nil {
			return err
		}
		for j := range c.used {
			c.used[j] = b.counted(c, j, gauge.used(j, &results[j]))
		}
		if before.charging != 0 || before != b.owed.look(c) {
			continue
		}
		for j := range c.used {
			c.used[j] = max(c.used[j]-before.charged-before.later, 0)
		}
		c.known, c.back = before.known, before.back
		return nil
	}
	return nil // a hit that is charged twice is better than one that is not charged
}

// counted returns how many hits of a key this process counts in a limit, used being
// what its gauge shows. During the wait of a lockout, that is the quota.
func (b *bound) counted(c *claim, limit int, used int64) int64 {
	l := b.shares[c.index].Limits[limit]
	if l.Lockout == (core.Lockout{}) || used < core.MaxQuota {
		return used
	}
	if quotas := c.plan.of(b.rules[c.index].Limits); quotas != nil && quotas[limit] != core.Unlimited {
		return part(quotas[limit], int64(b.config.Instances))
	}
	return l.Quota
}

// payTries is how often a charge is tried that does not fit because others take
// hits of the same key at the same moment.
const payTries = 3

// charge charges to the claimed keys what is due, in one operation, or in two if
// some of the hits must fit. Claims that owe nothing are left out, and so are keys
// that have been reset since they were claimed.
func (b *bound) charge(ctx context.Context, payer core.Bound, claims []*claim, dues []due) error {
	var sure, fitting charges
	for i, c := range claims {
		d := dues[i]
		switch {
		case d.hits <= 0 || b.owed.isReset(c):
		case d.hits > d.sure:
			fitting.add(c, d, d.hits)
		default:
			sure.add(c, d, d.sure)
		}
	}
	if err := b.chargeOnce(ctx, payer, &sure, core.Bound.Charge); err != nil {
		return err
	}
	if err := b.chargeOnce(ctx, payer, &fitting, core.Bound.Take); err != nil || fitting.batch.Allowed {
		return err
	}
	for i := range fitting.claims {
		if err := b.chargeFitting(ctx, payer, fitting.claims[i], fitting.dues[i], fitting.batch.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// charges is an operation that charges hits to claimed keys.
type charges struct {
	claims []*claim
	dues   []due
	batch  core.Batch
}

func (o *charges) add(c *claim, d due, hits int64) {
	o.claims, o.dues = append(o.claims, c), append(o.dues, d)
	o.batch.Items = append(o.batch.Items, core.Item{Rule: c.index, Key: c.name, Cost: hits, Quotas: d.quotas, Results: make([]core.Result, d.results)})
}

// chargeFitting charges as many of a key's hits as fit, and at least the sure ones,
// after a charge of them all has been denied. it is the item of that charge.
func (b *bound) chargeFitting(ctx context.Context, payer core.Bound, c *claim, d due, it core.Item) error {
	for range payTries {
		if !it.Unknown {
			for _, r := range it.Results {
				it.Cost = min(it.Cost, r.Remaining)
			}
		}
		if it.Cost <= d.sure {
			break
		}
		it.Unknown = false
		one := charges{claims: []*claim{c}, batch: core.Batch{Items: []core.Item{it}}}
		if err := b.chargeOnce(ctx, payer, &one, core.Bound.Take); err != nil || one.batch.Allowed {
			return err
		}
		it = one.batch.Items[0]
	}
	var sure charges
	if d.sure > 0 {
		sure.add(c, d, d.sure)
	}
	return b.chargeOnce(ctx, payer, &sure, core.Bound.Charge)
}

// chargeOnce asks the store for a charge, and notes which claims the store has
// charged or may have charged. op is Take or Charge.
func (b *bound) chargeOnce(ctx context.Context, payer core.Bound, o *charges, op intime.Op) error {
	if len(o.claims) == 0 {
		o.batch.Allowed = true
		return nil
	}
	err := b.call(ctx, payer, &o.batch, op)
	if !notCharged(err) {
		for _, c := range o.claims {
			c.asked = true
		}
	}
	return err
}
