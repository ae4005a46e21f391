package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// undo gives back what the items before todo were charged, and returns cause.
func (b *swapBound) undo(ctx context.Context, items, todo []swapItem, cause error) error {
	done := items[:len(items)-len(todo)]
	if len(done) == 0 {
		return cause
	}
	ctx = context.WithoutCancel(ctx)
	errs := []error{cause}
	for i := range done {
		if done[i].Cost > 0 {
			errs = append(errs, b.change(ctx, &done[i], (*swapItem).refund))
		}
	}
	return errors.Join(errs...)
}

func (it *swapItem) refund(now int64) {
	for i := range it.rule.meters {
		m, w := &it.rule.meters[i], it.states[i]
		m.advance(w, now)
		m.refund(w, now, it.At, int64(it.Results[i].ResetAfter/time.Microsecond), it.Cost)
	}
}

// change loads, changes and swaps one item until nobody comes in between.
func (b *swapBound) change(ctx context.Context, it *swapItem, f func(it *swapItem, now int64)) error {
	for attempt := range b.attempts {
		if err := b.pause(ctx, attempt); err != nil {
			return err
		}
		one := []swapItem{*it}
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
	return fmt.Errorf("limiter %q: %d attempts: %w", b.limiter, b.attempts, ErrContended)
}

// pause waits before another attempt, for a time that is random so that those
// who have met once do not meet again.
func (b *swapBound) pause(ctx context.Context, attempt int) error {
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

// Refund implements [Bound].
func (b *swapBound) Refund(ctx context.Context, batch *Batch) error {
	var errs []error
	for _, it := range b.items(batch) {
		errs = append(errs, b.change(ctx, &it, (*swapItem).refund))
	}
	return errors.Join(errs...)
}

// Reset implements [Bound].
func (b *swapBound) Reset(ctx context.Context, batch *Batch) error {
	names := make([]string, 0, len(batch.Items))
	for _, it := range b.items(batch) {
		names = append(names, it.name)
	}
	return b.swapper.Delete(ctx, names)
}
