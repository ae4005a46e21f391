package core

import (
	"context"
	"time"
)

// tellsHeld reports whether the observer wants to know of leases.
func (s *snapshot) tellsHeld() bool { return s.observer != nil && s.observer.Held != nil }

// gained tells the observer of the leases of a record. Nobody else has the record yet, so
// that their end comes after it.
func (s *snapshot) gained(ctx context.Context, r *record) {
	if s.tellsHeld() {
		r.since = time.Now()
		s.observer.holds(ctx, r, 1, 0)
	}
}

// heldFor returns how long a record has had its leases, 0 if no observer wants to know.
func (r *record) heldFor() time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return time.Since(r.since)
}

// gaveBack tells the observer that the leases of a record have ended, after a time.
func (s *snapshot) gaveBack(ctx context.Context, r *record, took time.Duration) {
	if s.tellsHeld() {
		s.observer.holds(ctx, r, -1, took)
	}
}

// holds tells the observer of the slots of a record, once for each rule.
func (o *observing) holds(ctx context.Context, r *record, sign int64, took time.Duration) {
	for _, it := range r.items {
		if o.snap.rules[it.rule].leases && it.cost > 0 {
			o.held(ctx, int(it.rule), sign*it.cost, took)
		}
	}
}

func (o *observing) held(ctx context.Context, rule int, slots int64, took time.Duration) {
	defer o.caught(ctx)
	o.Held(ctx, rule, slots, took)
}

// queued tells the observer that a request has joined the line of a key of a rule, or left it.
func (s *snapshot) queued(ctx context.Context, rule int, change int64) {
	if o := s.observer; o != nil && o.Queued != nil {
		defer o.caught(ctx)
		o.Queued(ctx, rule, change)
	}
}
