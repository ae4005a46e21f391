package swapstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

var _ core.Granter = (*bound)(nil)

// Grant implements [core.Granter]. If an item fails, the others are granted all the same,
// because the caller must not grant any of them again. Only if nothing has been granted
// yet, Grant stops: the caller may then try again.
func (b *bound) Grant(ctx context.Context, batch *core.Batch) error {
	var errs []error
	items := b.items(batch)
	batch.Allowed = true
	for i := range items {
		err := b.grant(ctx, &items[i])
		if i == 0 && errors.Is(err, core.ErrNotCharged) {
			return err
		}
		errs = append(errs, notcharged.Unmark(err))
	}
	return errors.Join(errs...)
}

// grant loads an item, grants its hits, and swaps it. It tries again if another writer
// has replaced the value in between.
func (b *bound) grant(ctx context.Context, it *item) error {
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return notcharged.Error(err)
		}
		look := *it.Item // the results are the item's own
		one := []item{*it}
		one[0].Item, look.Cost = &look, 0
		if err := b.load(ctx, one); err != nil {
			return notcharged.Error(err)
		}
		if err := b.untouchable(one); err != nil {
			return notcharged.Error(err)
		}
		now := b.now()
		some := one[0].loaded.Version != nil && one[0].is == readable
		for i := range one[0].rule.meters {
			m, _ := one[0].meter(i)
			m.Advance(one[0].states[i], now)
			if some {
				m.Grant(one[0].states[i], now, it.Cost)
			}
		}
		one[0].judge(now)
		it.At = look.At
		if !some {
			return nil
		}
		if stored, err := b.store(ctx, &one[0], now); err != nil || stored {
			return err
		}
	}
	return notcharged.Error(fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended))
}
