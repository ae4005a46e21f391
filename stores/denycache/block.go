package denycache

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var (
	_ core.Blocker       = (*bound)(nil)
	_ core.Granter       = (*bound)(nil)
	_ core.ResetterOfAll = (*bound)(nil)
)

// Block implements [core.Blocker], if the other store does. The end of a block is heard at
// once in this process, and within a second in others.
func (b *bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	blocker, ok := b.inner.(core.Blocker)
	if !ok {
		return fmt.Errorf("denycache: blocking a key: %T: %w", b.store, core.ErrUnsupported)
	}
	err := blocker.Block(ctx, batch, d)
	b.forget(batch)
	return err
}

// Grant implements [core.Granter], if the other store does. It is heard at once in this
// process, and within Config.Longest in others.
func (b *bound) Grant(ctx context.Context, batch *core.Batch) error {
	granter, ok := b.inner.(core.Granter)
	if !ok {
		return fmt.Errorf("denycache: granting hits: %T: %w", b.store, core.ErrUnsupported)
	}
	err := granter.Grant(ctx, batch)
	b.forget(batch)
	return err
}

// ResetAll implements [core.ResetterOfAll], if the other store does.
func (b *bound) ResetAll(ctx context.Context) error {
	r, ok := b.inner.(core.ResetterOfAll)
	if !ok {
		return fmt.Errorf("denycache: forgetting all keys: %T: %w", b.store, core.ErrUnsupported)
	}
	err := r.ResetAll(ctx)
	b.table.forgetAll()
	return err
}
