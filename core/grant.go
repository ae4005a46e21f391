package core

import (
	"context"
	"fmt"
	"slices"
)

// Grant gives n extra hits to every counter named, at once and once: a customer may
// make 50 more requests now. Each limit of the rule forgets n of the hits that it
// counts, the newest first. Earlier hits come back when they would have come back
// anyway.
//
// A key never has more hits left than its whole quota, or of a TokenBucket its whole
// burst. If a limit counts fewer than n hits, it forgets all of them, and the rest of n
// is lost. If a key has used more than its quota, because of a debt (see
// [Limiter.Adjust]) or a lower quota, Grant pays that off first, and the key may have
// none left after it.
//
// The decision is that of a Peek with the cost 0 right after: it shows what each
// limit has left, of the quotas that the hits bring if they do. If a request was charged
// before a Grant and is refunded after it, the refund may give back hits that were
// charged since.
//
// If the quota of a hit is 0, a TokenBucket gives nothing back.
//
// A limit of [Leases] is left alone: leases end with their requests. A key that is
// blocked stays blocked, and has the hits when the block ends: see [Limiter.Block].
// Requests that wait in this process try again at once: see [Limiter.Wait].
//
// n is 1 to MaxQuota. The error wraps ErrConfig if n is out of range, if a rule has a
// limit with a Lockout, whose wait only Reset ends, or if a rule has no other limits than
// Leases; ErrUnknownRule; [ErrUnsupported] if the store is no [Granter], which that of
// package synced is not; or it is the store's. After an error of the store the hits
// may have been granted, unless it wraps [ErrNotCharged]. Nothing is lost if ctx
// ends. The observer's operation is "grant".
func (l *Limiter) Grant(ctx context.Context, n int64, hits ...Hit) (d Decision, err error) {
	s := l.current.Load()
	c := l.session(s)
	defer l.release(c, nil)
	if err := c.grant(context.WithoutCancel(ctx), l.store, n, hits); err != nil {
		c.fail(ctx, &d, err)
		return d, err
	}
	l.freed(s, c.items)
	c.decide(&d)
	c.remember(ctx, &d, true, hits)
	return d, nil
}

// grant grants n hits. After it, the session is that of a look with the cost 0.
func (c *session) grant(ctx context.Context, store Store, n int64, hits []Hit) error {
	s := c.snap
	c.cost, c.batch.Peek, c.batch.Allowed = 0, false, true
	if n < 1 || n > MaxQuota {
		return fmt.Errorf("%w: limiter %q: granting %d hits: must be from 1 to %d", ErrConfig, s.name, n, int64(MaxQuota))
	}
	granter, ok := s.bound.(Granter)
	if !ok {
		return fmt.Errorf("limiter %q: granting hits: %T: %w", s.name, store, ErrUnsupported)
	}
	if err := c.addHits(n, hits); err != nil {
		return err
	}
	for i := range c.items {
		if err := s.grantable(&s.rules[c.items[i].Rule]); err != nil {
			return err
		}
	}
	if len(c.items) == 0 {
		return nil
	}
	c.bindItems()
	if err := s.run(ctx, "grant", &c.batch, granter.Grant); err != nil {
		return err
	}
	for i := range c.items {
		c.items[i].Cost = 0
	}
	return nil
}

// grantable returns an error if no hits can be granted to the keys of a rule.
func (s *snapshot) grantable(r *compiledRule) error {
	if i := slices.IndexFunc(r.Limits, func(l Limit) bool { return l.Lockout != (Lockout{}) }); i >= 0 {
		return fmt.Errorf("%w: limiter %q, rule %q, limit %q: granting hits: it has a Lockout: Reset ends its wait", ErrConfig, s.name, r.Name, r.Limits[i].Name)
	}
	if !slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Algorithm != Leases }) {
		return fmt.Errorf("%w: limiter %q, rule %q: granting hits: its limit counts requests in flight, which come back when the requests end", ErrConfig, s.name, r.Name)
	}
	return nil
}
