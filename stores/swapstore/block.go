package swapstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

var _ core.Blocker = (*bound)(nil)

// Block implements [core.Blocker].
func (b *bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	var errs []error
	items := b.items(batch)
	for i := range items {
		errs = append(errs, b.block(ctx, &items[i], d.Microseconds()))
	}
	return errors.Join(errs...)
}

// block loads an item, writes until when it is denied, and swaps it. It tries again if
// another writer has replaced the value in between.
func (b *bound) block(ctx context.Context, it *item, length int64) error {
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return err
		}
		one := []item{*it}
		if err := b.load(ctx, one); err != nil {
			return err
		}
		if err := b.untouchable(one); err != nil {
			return err
		}
		if length == 0 && one[0].loaded.Version == nil {
			return nil
		}
		now := b.now()
		one[0].foreign = slices.DeleteFunc(one[0].foreign, func(f foreignState) bool { return f.usedUp })
		if length > 0 {
			one[0].foreign = append(one[0].foreign, usedUpRecord(now, length))
		}
		if stored, err := b.store(ctx, &one[0], now); err != nil || stored {
			return notcharged.Unmark(err)
		}
	}
	return fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended)
}
