package memcachedstore

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
)

var _ core.Leaser = timelyBound{}

// Release implements [core.Leaser].
func (b timelyBound) Release(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return limits.Release(ctx, inner, batch)
	})
}

// Renew implements [core.Leaser].
func (b timelyBound) Renew(ctx context.Context, batch *core.Batch) error {
	return b.do(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return limits.Renew(ctx, inner, batch)
	})
}
