package closing

import (
	"context"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/limits"
)

var _ core.Leaser = bound{}

// Release implements [core.Leaser].
func (b bound) Release(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return limits.Release(ctx, b.inner, batch)
}

// Renew implements [core.Leaser].
func (b bound) Renew(ctx context.Context, batch *core.Batch) error {
	if err := b.gate.Err(); err != nil {
		return err
	}
	return limits.Renew(ctx, b.inner, batch)
}
