package resilient

import (
	"context"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/internal/notcharged"
)

// Take implements [core.Bound].
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	t, err := b.circuits.allow(b.where, batch)
	if err != nil {
		return b.meanwhile(ctx, batch, nil, err, false)
	}
	// The process decides and charges first. So its counters have all hits that
	// it admits, and no more of a burst passes if the store does not answer it
	// in time.
	var own *mirror
	if b.config.Meanwhile == ModeInProcess {
		m := b.newMirror(batch)
		defer b.freeMirror(m)
		if b.takeOwn(ctx, m) == nil {
			own = m
		}
	}
	if own != nil {
		began := time.Now()
		if err := b.prepare(ctx, batch); err != nil {
			b.done(ctx, &t, err, began)
			if !answerable(ctx, err) {
				return b.failed(ctx, own, err)
			}
			return b.meanwhile(ctx, batch, own, err, false)
		}
		if !own.batch.Allowed && b.deniesOwed(own) {
			return b.stricter(ctx, batch, own, &t)
		}
	}
	err = b.do(ctx, batch, core.Bound.Take, &t)
	switch {
	case err == nil:
		if !batch.Recalled {
			b.offset.Store(b.now() - at(batch))
		}
		return b.answered(ctx, batch, own)
	case answerable(ctx, err):
		return b.meanwhile(ctx, batch, own, err, !notCharged(err))
	default:
		return b.failed(ctx, own, err)
	}
}

// prepare tells the store, before it decides on a batch, what it does not know of the keys.
func (b *bound) prepare(ctx context.Context, batch *core.Batch) error {
	if err := b.settle(ctx, batch); err != nil {
		return err
	}
	return b.tell(ctx, batch)
}

// failed returns err for a request that nobody waits for any more. If it has leases in this
// process, they end. Its hits stay charged.
func (b *bound) failed(ctx context.Context, own *mirror, err error) error {
	if own != nil && own.charged() {
		_ = b.releaseOwn(ctx, &own.batch) // the counters are closed: nothing is held
	}
	return err
}

// answered makes the counters of this process agree with the store's decision:
// they count what the store has charged.
func (b *bound) answered(ctx context.Context, batch *core.Batch, own *mirror) error {
	if batch.Allowed {
		b.hold(batch, byStore)
	}
	switch {
	case own == nil || batch.Peek:
	case own.charged() && batch.Allowed:
		own.known = true
	case own.charged():
		return b.giveBack(ctx, own)
	case batch.Allowed:
		if err := b.renewOwn(ctx, &own.batch); err != nil {
			return err
		}
		b.owed.record(own)
	}
	return nil
}

// giveBack undoes the take of this process.
func (b *bound) giveBack(ctx context.Context, own *mirror) error {
	if err := b.releaseOwn(ctx, &own.batch); err != nil {
		return err
	}
	return b.local.Refund(ctx, &own.batch)
}

// takeOwn decides in this process.
func (b *bound) takeOwn(ctx context.Context, own *mirror) error {
	b.owed.ask(own)
	if err := b.local.Take(ctx, &own.batch); err != nil {
		return err
	}
	b.owed.decided(own)
	return nil
}

// freeMirror gives back a mirror for which takeOwn has been called.
func (b *bound) freeMirror(own *mirror) {
	b.owed.answered(own)
	own.free()
}

// deniesOwed reports whether the process denies a key of which the store does not know the
// hits, the leases or the block of an outage yet, because another request is telling it.
func (b *bound) deniesOwed(own *mirror) bool {
	if b.owed.none() && !b.hasLeases && b.owed.untold.none() {
		return false
	}
	for i := range own.items {
		it := &own.items[i]
		for j := range it.Results {
			if !it.Results[j].Allowed && b.ahead(it, j) {
				return true
			}
		}
	}
	return false
}

// ahead reports whether a limit of this process may count what the store does not know yet.
func (b *bound) ahead(it *core.Item, limit int) bool {
	if !b.owed.untold.none() && b.owed.untold.has(b.owed.key(it), b.now()) {
		return true
	}
	if b.leases[it.Rule] == limit {
		return b.unknownSlots(it)
	}
	return b.owed.has(it)
}

func denies(it *core.Item) bool {
	for j := range it.Results {
		if !it.Results[j].Allowed {
			return true
		}
	}
	return false
}

// stricter denies a batch with a key that has used up its quota during an
// outage. It still asks the store, without a charge, for its results and to
// find out whether it answers.
func (b *bound) stricter(ctx context.Context, batch *core.Batch, own *mirror, t *tickets) error {
	peek := batch.Peek
	batch.Peek = true
	err := b.do(ctx, batch, core.Bound.Take, t)
	batch.Peek = peek
	if err != nil {
		if !answerable(ctx, err) {
			return err
		}
		batch.Degraded = true
		own.copyTo(batch)
		return nil
	}
	batch.Allowed, batch.Degraded = false, true
	for i := range batch.Items {
		it := &batch.Items[i]
		for j, r := range own.items[i].Results {
			if !it.Unknown && !b.ahead(&own.items[i], j) {
				continue // the store knows all
			}
			if it.Unknown || r.RetryAfter > it.Results[j].RetryAfter || r.RetryAfter == it.Results[j].RetryAfter && r.Remaining < it.Results[j].Remaining {
				it.Results[j] = r
			}
		}
		it.Unknown = false
	}
	return nil
}

// meanwhile decides without the store. own is the decision of this process, nil
// if it has not decided. asked means that the store was asked and may have
// charged the batch.
func (b *bound) meanwhile(ctx context.Context, batch *core.Batch, own *mirror, cause error, asked bool) error {
	batch.Degraded = true
	switch {
	case b.config.Meanwhile == ModeOpen:
		b.admit(batch)
		b.hold(batch, grantedIf(asked))
		return nil
	case b.config.Meanwhile == ModeClosed:
		if !asked {
			cause = notcharged.Error(cause)
		}
		return cause
	case own == nil:
		own = b.newMirror(batch)
		defer b.freeMirror(own)
		if err := b.takeOwn(ctx, own); err != nil {
			return err
		}
	case b.owed.misses(own):
		// The store has allowed other requests, for which the hits of this one leave
		// no room in the process: they come first.
		if err := b.giveBack(ctx, own); err != nil {
			return err
		}
		b.owed.answered(own)
		if err := b.takeOwn(ctx, own); err != nil {
			return err
		}
	}
	own.copyTo(batch)
	if batch.Allowed {
		b.hold(batch, grantedIf(asked))
	} else if asked {
		b.orphan(batch)
	}
	switch {
	case batch.Peek:
	case batch.Allowed:
		b.owed.note(b.where, batch, asked, own)
		b.payer.wake()
	case !slow(cause) && b.owed.noteDenied(b.where, batch):
		b.payer.wake()
	}
	return nil
}

// admit fills in results as if nothing had been taken.
func (b *bound) admit(batch *core.Batch) {
	batch.Allowed = true
	now := b.now()
	for i := range batch.Items {
		it := &batch.Items[i]
		it.At = now
		for j, l := range b.rules[it.Rule].Limits {
			most := l.Capacity()
			if it.Quotas != nil && it.Quotas[j] != core.Unlimited {
				most = capacity(l, it.Quotas[j])
			}
			it.Results[j] = core.Result{Allowed: true, Remaining: most}
		}
	}
}
