package swapstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// undo refunds the items before todo, and returns cause. If cause wraps
// core.ErrNotCharged, the items of todo are not charged; the error that undo
// returns then wraps it only if the others are not charged either.
func (b *bound) undo(ctx context.Context, items, todo []item, cause error) error {
	done := items[:len(items)-len(todo)]
	if len(done) == 0 {
		return cause
	}
	ctx = context.WithoutCancel(ctx)
	var errs []error
	for i := range done {
		if done[i].Cost > 0 {
			errs = append(errs, notcharged.Unmark(b.change(ctx, &done[i], (*item).undo)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(notcharged.Unmark(cause), err)
	}
	return cause
}

// undo gives back all that a take has charged.
func (it *item) undo(now int64) {
	it.refund(now)
	if i := it.rule.leases; it.leased {
		it.rule.meters[i].Release(it.states[i], it.Lease)
	}
}

func (it *item) refund(now int64) {
	for i := range it.rule.meters {
		m, _ := it.meter(i)
		w := it.states[i]
		m.Advance(w, now)
		m.Refund(w, now, it.At, int64(it.Results[i].ResetAfter/time.Microsecond), it.Cost)
	}
}

// change loads, changes and swaps one item. It tries again if another writer
// has replaced the value in between.
func (b *bound) change(ctx context.Context, it *item, f func(it *item, now int64)) error {
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return err
		}
		one := []item{*it}
		if err := b.load(ctx, one); err != nil {
			return err
		}
		if one[0].loaded.Version == nil || one[0].is != readable {
			return nil // nothing is owed
		}
		now := b.now()
		f(&one[0], now)
		if stored, err := b.store(ctx, &one[0], now); err != nil || stored {
			return err
		}
	}
	return fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, core.ErrContended)
}

// pause waits before another attempt. The time is random, so that writers that
// have collided once do not collide again.
func (b *bound) pause(ctx context.Context, attempt int) error {
	if attempt == 0 {
		return nil
	}
	most := time.Duration(1<<min(attempt, 7)) * 100 * time.Microsecond
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Refund implements [core.Bound].
func (b *bound) Refund(ctx context.Context, batch *core.Batch) error {
	var errs []error
	for _, it := range b.items(batch) {
		errs = append(errs, b.change(ctx, &it, (*item).refund))
	}
	return errors.Join(errs...)
}

// Reset implements [core.Bound].
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	names := make([]string, 0, len(batch.Items))
	for _, it := range b.items(batch) {
		names = append(names, it.name)
	}
	return b.swapper.Delete(ctx, names)
}
