package resilient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

var (
	_ core.Blocker       = (*bound)(nil)
	_ core.ResetterOfAll = (*bound)(nil)
)

// Block implements [core.Blocker], if the other store does. While the store does not
// answer, a key is blocked in the processes that have called Block, and in no others.
func (b *bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	if _, ok := b.inner.(core.Blocker); !ok {
		return fmt.Errorf("resilient: blocking a key: %T: %w", b.store, core.ErrUnsupported)
	}
	err := b.ask(ctx, batch, func(inner core.Bound, ctx context.Context, batch *core.Batch) error {
		return inner.(core.Blocker).Block(ctx, batch, d)
	})
	if errors.Is(err, core.ErrUnsupported) {
		return err
	}
	return errors.Join(b.local.(core.Blocker).Block(ctx, batch, d), err)
}

// ResetAll implements [core.ResetterOfAll], if the other store does. Hits of an outage
// that have not been charged to the store yet are charged all the same.
func (b *bound) ResetAll(ctx context.Context) error {
	if _, ok := b.inner.(core.ResetterOfAll); !ok {
		return fmt.Errorf("resilient: forgetting all keys: %T: %w", b.store, core.ErrUnsupported)
	}
	err := b.ask(ctx, new(core.Batch), func(inner core.Bound, ctx context.Context, _ *core.Batch) error {
		return inner.(core.ResetterOfAll).ResetAll(ctx)
	})
	if errors.Is(err, core.ErrUnsupported) {
		return err
	}
	return errors.Join(b.local.(core.ResetterOfAll).ResetAll(ctx), err)
}
