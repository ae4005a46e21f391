package resilient

import (
	"context"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Charge implements [core.Bound]. It does not end with ctx, but within the
// deadline: a charge is not lost because the client has hung up.
func (b *bound) Charge(ctx context.Context, batch *core.Batch) error {
	ctx = context.WithoutCancel(ctx)
	t, err := b.circuits.allow(b.where, batch)
	if err != nil {
		return b.chargeMeanwhile(ctx, batch, nil, err, false)
	}
	var own *mirror
	if b.config.Meanwhile == ModeInProcess {
		m := b.newMirror(batch)
		defer b.freeMirror(m)
		if b.chargeOwn(ctx, m) == nil {
			own = m
		}
	}
	if own != nil {
		began := time.Now()
		if err := b.settle(ctx, batch); err != nil {
			b.done(ctx, &t, err, began)
			return b.chargeMeanwhile(ctx, batch, own, err, false)
		}
	}
	if err := b.do(ctx, batch, core.Bound.Charge, &t); err != nil {
		return b.chargeMeanwhile(ctx, batch, own, err, !notCharged(err))
	}
	b.offset.Store(b.now() - at(batch))
	if own != nil {
		own.known = true
	}
	return nil
}

// chargeOwn charges in this process.
func (b *bound) chargeOwn(ctx context.Context, own *mirror) error {
	b.owed.ask(own)
	if err := b.local.Charge(ctx, &own.batch); err != nil {
		return err
	}
	b.owed.decided(own)
	return nil
}

// chargeMeanwhile charges without the store. own is the charge of this process, nil
// if it has not charged. asked means that the store was asked and may have
// charged the batch.
func (b *bound) chargeMeanwhile(ctx context.Context, batch *core.Batch, own *mirror, cause error, asked bool) error {
	if !answerable(ctx, cause) {
		return cause
	}
	batch.Degraded = true
	switch b.config.Meanwhile {
	case ModeOpen:
		b.admit(batch)
		return nil
	case ModeClosed:
		return cause
	case ModeInProcess:
	}
	if own == nil {
		own = b.newMirror(batch)
		defer b.freeMirror(own)
		if err := b.chargeOwn(ctx, own); err != nil {
			return err
		}
	}
	own.copyTo(batch)
	b.owed.note(b.where, batch, asked, own)
	b.payer.wake()
	return nil
}
