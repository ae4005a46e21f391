package replay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// withoutLeases is a store that leaves out the limits of what is in flight: an access log
// does not tell how many requests ran at a time. Such a limit allows everything.
type withoutLeases struct {
	core.Store
	left *[]string // the names of these limits
}

// Guarantees implements [core.Store].
func (s withoutLeases) Guarantees() core.Guarantees { return core.Guarantees{Ops: core.AllOps} }

// Open implements [core.Store].
func (s withoutLeases) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c := &unleased{leases: make([]int, len(rules)), left: s.left}
	counters, err := s.Store.Open(limiter, c.leaveOut(rules))
	c.Counters = counters
	return c, err
}

// unleased are the Counters of withoutLeases.
type unleased struct {
	core.Counters
	leases []int // the limit of each rule that is left out, -1 for none
	left   *[]string
}

var errUnused = errors.New("replay: a replay never changes its policies")

// Reopen implements [core.Counters].
func (c *unleased) Reopen([]core.StoreRule) (core.Counters, error) { return nil, errUnused }

// leaveOut returns the rules with a limit that never denies in place of each that is left
// out.
func (c *unleased) leaveOut(rules []core.StoreRule) []core.StoreRule {
	rules = slices.Clone(rules)
	for i := range rules {
		r := &rules[i]
		c.leases[i] = slices.IndexFunc(r.Limits, func(l core.Limit) bool { return l.Algorithm == core.Leases })
		if c.leases[i] < 0 {
			continue
		}
		r.Limits = slices.Clone(r.Limits)
		l := &r.Limits[c.leases[i]]
		if c.left != nil && !slices.Contains(*c.left, l.Name) {
			*c.left = append(*c.left, l.Name)
		}
		const odd = core.MinWindow + time.Microsecond // no other limit of the rule has this window
		*l = core.Limit{Name: l.Name, Quota: core.MaxQuota, Window: odd, Algorithm: core.FixedWindow}
	}
	return rules
}

// Do implements [core.Counters].
func (c *unleased) Do(ctx context.Context, batch *core.Batch) error {
	if batch.Op&(core.OpRelease|core.OpRenew) != 0 {
		return nil
	}
	for i := range batch.Items {
		if it := &batch.Items[i]; it.Quotas != nil && c.leases[it.Rule] >= 0 {
			it.Quotas[c.leases[it.Rule]] = core.MaxQuota
		}
	}
	return c.Counters.Do(ctx, batch)
}
