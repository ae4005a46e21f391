package core

import (
	"context"
	"errors"
)

// Allow charges one hit to every counter named, or to none if one of their
// limits denies it, and returns whether the hit is allowed. It decides, charges
// and counts as [Limiter.Take] with a cost of 1 does, and takes less time. It is
// for programs that need neither the rest of the decision nor a refund.
//
// If the limiter cannot decide, Allow returns false, and Config.Log gets a line
// with the error, which is the store's or wraps ErrUnknownRule, or ErrUnsupported if a rule has a
// limit of [Leases]. The hit may have
// been charged all the same. Without hits, Allow returns true. A program that must handle errors itself calls Take.
func (l *Limiter) Allow(ctx context.Context, hits ...Hit) bool {
	s := l.current.Load()
	if len(hits) == 1 {
		if allowed, done := s.allowSingle(&hits[0]); done {
			return allowed
		}
		if s.observer != nil && s.observer.Decided != nil {
			if allowed, done := s.allowObserved(ctx, &hits[0]); done {
				return allowed
			}
		}
	}
	var d Decision
	if err := l.takeFor(ctx, 1, charging, hits, &d); errors.Is(err, ErrUnknownRule) || errors.Is(err, ErrUnsupported) { // takeFor logs all others
		l.counts.failures.report(ctx, s, callFailure, "allow", "", err)
	}
	return d.Allowed
}
