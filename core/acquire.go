package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Acquire takes one slot of every counter named, and one hit of its other limits, or
// nothing if a limit denies it. If the decision is Allowed, the caller calls release
// when what it has begun is done: it ends the leases that the rules with a limit of
// [Leases] have given. The hits of other limits stay charged.
//
// release is never nil. It may be called several times and concurrently, of which only
// the first call counts. It asks a shared store, and returns when the store has answered
// or the store's deadline has passed: see [Leases] for what becomes of a lease that could
// not be released. The limiter renews the lease until release is called, so a caller
// that forgets it holds the slot for ever.
//
// The decision and the error are those of [Limiter.Take] with a cost of 1. If the store
// fails and may have given the lease, the limiter releases it in the background.
func (l *Limiter) Acquire(ctx context.Context, hits ...Hit) (d Decision, release func(), err error) {
	if d, err = l.take(ctx, 1, hits, true); err != nil || !d.Allowed || !d.rest.leased() {
		return d, doNothing, err
	}
	return d, func() { d.snap.limiter.endLease(context.Background(), d.snap, d.rest) }, nil
}

func doNothing() {}

// leased reports whether a decision has given leases.
func (r *rest) leased() bool { return r != nil && r.lease != 0 }

// Hold makes Settle leave the leases of the decision to release, which ends them: for
// what goes on after the handler, such as a connection that it has hijacked. held is
// false if the decision has no leases, or they have ended; release then does nothing.
// Release may be called several times and concurrently.
func (d Decision) Hold() (release func(), held bool) {
	if !d.rest.leased() || d.rest.released.Load() {
		return doNothing, false
	}
	d.rest.held.Store(true)
	return func() { d.snap.limiter.endLease(context.Background(), d.snap, d.rest) }, true
}

// newLease returns a number that no other take has: of 2^64, at random.
func newLease() uint64 {
	for {
		if n := rand.Uint64(); n != 0 { //nolint:gosec // it need not be secret
			return n
		}
	}
}

// lease gives the session's items the lease that they get if they are admitted.
func (c *session) giveLease() {
	c.lease = 0
	for i := range c.batch.Items {
		it := &c.batch.Items[i]
		if !c.snap.rules[it.Rule].leases || it.Cost == 0 {
			continue
		}
		if c.lease == 0 {
			c.lease = newLease()
		}
		it.Lease = c.lease
	}
}

// needsAcquire returns an error if the items would get leases that nobody ends.
func (c *session) needsAcquire() error {
	for i := range c.batch.Items {
		if r := &c.snap.rules[c.batch.Items[i].Rule]; r.leases && c.batch.Items[i].Cost > 0 {
			return fmt.Errorf("limiter %q, rule %q: has a limit of what is in flight: call Acquire, and release when it is done: %w", c.snap.name, r.Name, ErrUnsupported)
		}
	}
	return nil
}

// taken is called after a Take with the session's lease.
func (c *session) taken(err error) {
	if err != nil && !errors.Is(err, ErrNotCharged) && !errors.Is(err, ErrClosed) && c.snap.shared {
		c.keeper.lost(c)
	}
}

// endLease ends the leases of a record, once.
func (l *Limiter) endLease(ctx context.Context, s *snapshot, r *rest) {
	if !r.released.CompareAndSwap(false, true) {
		return
	}
	again := s.shared && l.keeper.remove(r)
	defer s.gaveBack(ctx, r, r.heldFor())
	c := l.session(s)
	c.addLeases(r)
	if s.memory == nil { // which does not look at the context
		ctx = context.WithoutCancel(ctx)
	}
	err := s.do(ctx, OpRelease, &c.batch)
	if err != nil {
		c.stripe.failed.Add(1)
		c.reportStore(ctx, "release", err)
	}
	l.lines.freed(s, c.batch.Items)
	if s.shared && (again || err != nil) {
		l.keeper.lost(c)
	}
	l.release(c)
}

// addLeases adds the items of a record that have leases.
func (c *session) addLeases(r *rest) {
	for _, it := range r.items {
		if c.snap.rules[it.rule].leases && it.cost > 0 {
			c.addDecided(it, it.cost, nil).Lease = r.lease
		}
	}
}
