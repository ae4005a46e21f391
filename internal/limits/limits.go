// Package limits gives the stores of this module what package core keeps to
// itself of a limit: its arithmetic.
package limits

import (
	"context"
	"fmt"
	"slices"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/meter"
)

// Lease returns the index of the limit of core.Leases among a rule's limits, -1 if
// there is none.
func Lease(limits []core.Limit) int {
	return slices.IndexFunc(limits, func(l core.Limit) bool { return l.Algorithm == core.Leases })
}

// RefuseLeases returns an error that names the first limit of core.Leases, for a store
// that cannot count them; nil if there is none. why says what to do instead.
func RefuseLeases(rules []core.StoreRule, why string) error {
	for i := range rules {
		if j := Lease(rules[i].Limits); j >= 0 {
			return fmt.Errorf("%w: rule %q, limit %q: Algorithm: %s: %s", core.ErrConfig, rules[i].Name, rules[i].Limits[j].Name, core.Leases, why)
		}
	}
	return nil
}

// CheckLeaser returns the error of RefuseLeases if a Bound for the rules is no
// core.Leaser.
func CheckLeaser(b core.Bound, rules []core.StoreRule) error {
	if _, ok := b.(core.Leaser); ok {
		return nil
	}
	return RefuseLeases(rules, fmt.Sprintf("the store cannot count what is in flight (%T is no core.Leaser)", b))
}

// Release does it with a Bound that CheckLeaser has passed, or whose rules have no such
// limit.
func Release(ctx context.Context, b core.Bound, batch *core.Batch) error {
	if l, ok := b.(core.Leaser); ok {
		return l.Release(ctx, batch)
	}
	return core.ErrUnsupported
}

// Renew is as Release.
func Renew(ctx context.Context, b core.Bound, batch *core.Batch) error {
	if l, ok := b.(core.Leaser); ok {
		return l.Renew(ctx, batch)
	}
	return core.ErrUnsupported
}

// Of returns a limit as package meter counts it. The limit must be valid.
func Of(l core.Limit) meter.Limit { return meter.FromCore(l) }
