package resilient

import (
	"context"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Take implements [core.Bound].
func (b *bound) Take(ctx context.Context, batch *core.Batch) error {
	t, err := b.circuits.allow(b.where, batch)
	if err != nil {
		return b.meanwhile(ctx, batch, nil, err, false)
	}
	// What this process would decide is found out, and charged, before: so that
	// its counters know of all that it has let through, and of a burst that the
	// store does not answer in time no more passes than of any other.
	var own *mirror
	if b.config.Meanwhile == InProcess {
		own = newMirror(batch)
		defer own.free()
		if err := b.local.Take(ctx, &own.batch); err != nil {
			own = nil
		}
	}
	if own != nil {
		began := time.Now()
		if err := b.settle(ctx, batch, own); err != nil {
			b.done(ctx, &t, err, began)
			if !answerable(ctx, err) {
				return err
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
		if own != nil && own.charged() && !batch.Allowed {
			return b.local.Refund(ctx, &own.batch)
		}
		return nil
	case answerable(ctx, err):
		return b.meanwhile(ctx, batch, own, err, !neverSent(err))
	default:
		return err
	}
}

// deniesOwed reports whether the process denies a key whose hits of an outage the
// store does not know yet, because another request is charging them.
func (b *bound) deniesOwed(own *mirror) bool {
	if b.owed.none() {
		return false
	}
	for i := range own.items {
		if denies(&own.items[i]) && b.owed.has(&own.items[i]) {
			return true
		}
	}
	return false
}

func denies(it *core.Item) bool {
	for j := range it.Results {
		if !it.Results[j].Allowed {
			return true
		}
	}
	return false
}

// stricter denies a batch of which a key has used up its quota while the store
// did not answer. The store is asked all the same, without a charge: for its
// results, and to find out whether it answers.
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
		if !it.Unknown && !b.owed.has(&own.items[i]) {
			continue // the store knows all of this key's hits
		}
		for j, r := range own.items[i].Results {
			if it.Unknown || r.RetryAfter > it.Results[j].RetryAfter || r.RetryAfter == it.Results[j].RetryAfter && r.Remaining < it.Results[j].Remaining {
				it.Results[j] = r
			}
		}
		it.Unknown = false
	}
	return nil
}

// meanwhile decides without the store. own is what this process has decided
// already, nil if it has not been asked. asked says that the store was asked, and
// may have charged the batch.
func (b *bound) meanwhile(ctx context.Context, batch *core.Batch, own *mirror, cause error, asked bool) error {
	batch.Degraded = true
	switch {
	case b.config.Meanwhile == Open:
		b.admit(batch)
		return nil
	case b.config.Meanwhile == Closed:
		return cause
	case own != nil:
		own.copyTo(batch)
	default:
		if err := b.local.Take(ctx, batch); err != nil {
			return err
		}
	}
	if batch.Allowed && !batch.Peek {
		b.owed.note(batch, asked)
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
			it.Results[j] = core.Result{Allowed: true, Remaining: max(l.Quota, l.Burst)}
			if l.Algorithm == core.TokenBucket && l.Burst > 0 {
				it.Results[j].Remaining = l.Burst
			}
		}
	}
}
