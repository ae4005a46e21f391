package denycache

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
)

var _ core.Leaser = (*bound)(nil)

// Release implements [core.Leaser], if the other store does.
func (b *bound) Release(ctx context.Context, batch *core.Batch) error {
	return limits.Release(ctx, b.inner, batch)
}

// Renew implements [core.Leaser], if the other store does.
func (b *bound) Renew(ctx context.Context, batch *core.Batch) error {
	return limits.Renew(ctx, b.inner, batch)
}

// leases returns for each rule which of its limits counts leases, -1 for none.
func leases(rules []core.StoreRule) []int {
	all := make([]int, len(rules))
	for i := range rules {
		all[i] = limits.Lease(rules[i].Limits)
	}
	return all
}

// mayEnd reports whether a limit of leases denies the item: another request may end
// at any time, so that such a denial is never remembered.
func (b *bound) mayEnd(it *core.Item) bool {
	i := b.leases[it.Rule]
	return i >= 0 && !it.Results[i].Allowed
}
