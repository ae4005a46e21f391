package resilient

import (
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// part returns an instance's part of a quota. [core.Unlimited] stays.
func part(quota, instances int64) int64 {
	if quota == core.Unlimited {
		return quota
	}
	return (quota + instances - 1) / instances
}

// capacity returns the most hits that a limit allows at once with a quota of a
// request: [core.Unlimited] if it denies none.
func capacity(l core.Limit, quota int64) int64 {
	if quota == core.Unlimited {
		return quota
	}
	m := meter.New(limits.Of(l))
	m = m.With(quota)
	return m.Capacity()
}

// gauge reads from the result of a look how many hits a rule's limits count,
// also if they are more than the limits' quotas.
type gauge struct {
	quotas     []int64 // of the look: the highest that there are
	capacities []int64 // with these quotas
}

func newGauges(rules []core.StoreRule) (gauges []gauge) {
	for _, r := range rules {
		var g gauge
		for _, l := range r.Limits {
			quota := int64(core.MaxQuota)
			if l.Algorithm == core.SlidingLog || l.Algorithm == core.Leases {
				quota = core.MaxLogQuota
			}
			g.quotas, g.capacities = append(g.quotas, quota), append(g.capacities, capacity(l, quota))
		}
		gauges = append(gauges, g)
	}
	return gauges
}

// used returns how many hits a limit counts. During the wait of a lockout, that is
// the whole capacity.
func (g *gauge) used(limit int, r *core.Result) int64 { return g.capacities[limit] - r.Remaining }

// plan is the quotas with which the last hits of a key were charged, if the
// request brought its own.
type plan struct {
	limits []core.Limit // of the rule
	quotas []int64
}

// newPlan returns nil for a request without quotas of its own.
func newPlan(of []core.Limit, quotas []int64) *plan {
	if quotas == nil {
		return nil
	}
	return &plan{of, slices.Clone(quotas)}
}

// of returns the quotas for a version of the rule's limits, nil for the limits' own.
// A limit that the plan does not know has its own.
func (p *plan) of(now []core.Limit) []int64 {
	if p == nil {
		return nil
	}
	quotas := make([]int64, len(now))
	for i, l := range now {
		quotas[i] = l.Quota
		if j := slices.IndexFunc(p.limits, func(was core.Limit) bool { return countsAs(was, l) }); j >= 0 {
			quotas[i] = p.quotas[j]
		}
	}
	return quotas
}

// countsAs reports whether two limits of a rule count in the same counter.
func countsAs(a, b core.Limit) bool { return limits.Of(a).Identity() == limits.Of(b).Identity() }
