package replay

import (
	"context"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// withoutLeases is a store that leaves out the limits of what is in flight: an access log
// does not tell how many requests ran at a time. Such a limit admits everything.
type withoutLeases struct {
	core.Store
	left *[]string // the names of these limits
}

// Traits implements the method that core.TraitsOf calls.
func (s withoutLeases) Traits() core.Traits { return core.Traits{Private: true} }

// Bind implements [core.Store].
func (s withoutLeases) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b := &unleased{leases: make([]int, len(rules)), left: s.left}
	bound, err := s.Store.Bind(limiter, b.leaveOut(rules))
	b.Bound = bound
	return b, err
}

// unleased is a Bound of withoutLeases.
type unleased struct {
	core.Bound
	leases []int // the limit of each rule that is left out, -1 for none
	left   *[]string
}

// Rebind implements [core.Bound].
func (b *unleased) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next := &unleased{leases: make([]int, len(rules)), left: b.left}
	bound, err := b.Bound.Rebind(next.leaveOut(rules))
	next.Bound = bound
	return next, err
}

// leaveOut returns the rules with a limit that never denies in place of each that is left
// out.
func (b *unleased) leaveOut(rules []core.StoreRule) []core.StoreRule {
	rules = slices.Clone(rules)
	for i := range rules {
		r := &rules[i]
		b.leases[i] = slices.IndexFunc(r.Limits, func(l core.Limit) bool { return l.Algorithm == core.Leases })
		if b.leases[i] < 0 {
			continue
		}
		r.Limits = slices.Clone(r.Limits)
		l := &r.Limits[b.leases[i]]
		if b.left != nil && !slices.Contains(*b.left, l.Name) {
			*b.left = append(*b.left, l.Name)
		}
		const odd = core.MinWindow + time.Microsecond // no other limit of the rule has this window
		*l = core.Limit{Name: l.Name, Quota: core.MaxQuota, Window: odd, Algorithm: core.FixedWindow}
	}
	return rules
}

// Take implements [core.Bound].
func (b *unleased) Take(ctx context.Context, batch *core.Batch) error {
	for i := range batch.Items {
		if it := &batch.Items[i]; it.Quotas != nil && b.leases[it.Rule] >= 0 {
			it.Quotas[b.leases[it.Rule]] = core.MaxQuota
		}
	}
	return b.Bound.Take(ctx, batch)
}

// Release implements [core.Leaser].
func (b *unleased) Release(context.Context, *core.Batch) error { return nil }

// Renew implements [core.Leaser].
func (b *unleased) Renew(context.Context, *core.Batch) error { return nil }
