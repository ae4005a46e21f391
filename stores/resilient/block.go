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

// Block implements [core.Blocker], if the other store does. If the store does not answer,
// the error wraps [core.ErrDegraded]: the key is blocked in this process, and in the
// others as soon as the store answers again. ModeOpen and ModeClosed block nothing then.
// Block does not end with ctx, but within the deadline.
func (b *bound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	if _, ok := b.inner.(core.Blocker); !ok {
		return fmt.Errorf("resilient: blocking a key: %T: %w", b.store, core.ErrUnsupported)
	}
	ctx = context.WithoutCancel(ctx)
	b.forgetBlocks(ctx, batch)
	err := b.ask(ctx, batch, blockFor(d))
	if b.config.Meanwhile != ModeInProcess || errors.Is(err, core.ErrUnsupported) {
		return err
	}
	if own := b.local.(core.Blocker).Block(ctx, batch, d); own != nil {
		return errors.Join(own, err)
	}
	switch {
	case err == nil:
		return nil
	case d == 0:
		return degraded("the store may still block the key: end the block again when it answers", err)
	}
	now := b.now()
	for i := range batch.Items {
		b.owed.untold.add(b.owed.key(&batch.Items[i]), now+d.Microseconds(), now)
	}
	b.payer.wake()
	return degraded("the store is told of the block when it answers again", err)
}

// degraded returns the error of an operation that was done in this process and has failed with
// err in the store. then says what follows.
func degraded(then string, err error) error {
	return fmt.Errorf("resilient: %w: %s: %w", core.ErrDegraded, then, err)
}

// ResetAll implements [core.ResetterOfAll], if the other store does. Hits of an outage
// that have not been charged to the store yet are charged all the same. If the store does
// not answer, the error wraps [core.ErrDegraded], as that of Reset.
func (b *bound) ResetAll(ctx context.Context) error {
	if _, ok := b.inner.(core.ResetterOfAll); !ok {
		return fmt.Errorf("resilient: forgetting all keys: %T: %w", b.store, core.ErrUnsupported)
	}
	await(ctx, b.owed.untold.dropAll())
	err := b.ask(ctx, new(core.Batch), func(inner core.Bound, ctx context.Context, _ *core.Batch) error {
		return inner.(core.ResetterOfAll).ResetAll(ctx)
	})
	if errors.Is(err, core.ErrUnsupported) {
		return err
	}
	return b.forgotten(b.local.(core.ResetterOfAll).ResetAll(ctx), err)
}

// Reset implements [core.Bound]. If the store does not answer, the error wraps
// [core.ErrDegraded]: this process has forgotten the keys, and the store has not.
func (b *bound) Reset(ctx context.Context, batch *core.Batch) error {
	for _, p := range b.owed.forget(batch) {
		await(ctx, []<-chan struct{}{p.done}) // a charge of the key that has been sent may arrive after the Reset
	}
	b.forgetBlocks(ctx, batch)
	return b.forgotten(b.local.Reset(ctx, batch), b.ask(ctx, batch, core.Bound.Reset))
}

// forgotten returns the error of a Reset from that of this process and that of the store.
func (b *bound) forgotten(own, err error) error {
	if own != nil || err == nil || b.config.Meanwhile != ModeInProcess {
		return errors.Join(own, err)
	}
	return degraded("the store still counts what it has: reset it again when it answers", err)
}

// await waits until all channels are closed, or ctx ends.
func await(ctx context.Context, all []<-chan struct{}) {
	for _, done := range all {
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}
