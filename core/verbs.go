package core

import (
	"context"
	"fmt"
	"time"
)

// Block denies the counters named until d has passed, whatever they have counted, in
// every process that shares the store. It is for a client that misbehaves, or an
// account that is under attack. d is 0 to MaxWindow. A d of 0 ends a block, and so does
// Reset. Until then a decision on the key has no hits left, and its RetryAfter is at
// least the rest of d. A [Memory] holds at most MaxKeys blocks: of more, it keeps
// those that end last.
//
// The error wraps ErrUnknownRule; ErrConfig if d is out of range; [ErrUnsupported] if
// the store is no [Blocker]; [ErrDegraded] if the block holds in this process only, because the store
// does not answer; or it is the store's.
func (l *Limiter) Block(ctx context.Context, d time.Duration, hits ...Hit) error {
	if d < 0 || d > MaxWindow {
		return fmt.Errorf("%w: limiter %q: blocking for %v: must be from 0 to 366 days", ErrConfig, l.Name(), d)
	}
	return l.each(ctx, "block", hits, func(ctx context.Context, s *snapshot, b *Batch) error {
		blocker, ok := s.bound.(Blocker)
		if !ok {
			return fmt.Errorf("limiter %q: blocking a key: %T: %w", s.name, l.store, ErrUnsupported)
		}
		return blocker.Block(ctx, b, d)
	})
}

// ResetAll forgets what the limiter has counted for all keys of all rules, in every
// process that shares the store. What is charged while it runs may be forgotten or
// not. The error wraps [ErrUnsupported] if the store is no [ResetterOfAll]; or it is
// the store's.
func (l *Limiter) ResetAll(ctx context.Context) error {
	bound := l.current.Load().bound
	if r, ok := bound.(ResetterOfAll); ok {
		defer l.freedAll()
		return r.ResetAll(ctx)
	}
	return fmt.Errorf("limiter %q: forgetting all keys: %T: %w", l.Name(), l.store, ErrUnsupported)
}

// Reset forgets all that the counters named have counted. If a request was charged
// before a Reset and is refunded after it, the refund may take back hits that were
// charged since. The error wraps ErrUnknownRule; [ErrDegraded] if only this process has
// forgotten them, because the store does not answer; or it is the store's.
func (l *Limiter) Reset(ctx context.Context, hits ...Hit) error {
	return l.each(ctx, "reset", hits, func(ctx context.Context, s *snapshot, b *Batch) error { return s.bound.Reset(ctx, b) })
}

// each does op, which is an operation of the store, with the items of hits.
func (l *Limiter) each(ctx context.Context, operation string, hits []Hit, op func(context.Context, *snapshot, *Batch) error) error {
	s := l.current.Load()
	c := l.session(s)
	defer l.release(c, nil)
	if err := c.addHits(0, hits); err != nil || len(c.items) == 0 {
		return err
	}
	c.bindItems()
	defer l.freed(s, c.items)
	return s.run(ctx, operation, &c.batch, func(ctx context.Context, b *Batch) error { return op(ctx, s, b) })
}

// Denial returns the response to a request that a handler refuses because of this
// decision, for instance one of Take: what the limiter's [Hooks.OnDisallowed]
// returns. The adapters' functions Refuse write it. The decision must deny: of one that
// allows, such as that of the middleware, the response is a 429 without Retry-After.
func (d Decision) Denial(r Request) Denial {
	if d.detail.snap == nil {
		return d.denial()
	}
	return d.detail.snap.deny(r, &d)
}
