package core

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// Observer is told what limiters decide: for metrics, traces and logs. It is the
// Observer of a [Config]. Package observe counts decisions, and has packages for
// Prometheus, OpenTelemetry and log/slog. One Observer may serve any number of
// limiters.
type Observer interface {
	// Observe is called by New and by Reconfigure, before the configuration is in
	// force, and returns the functions that the limiter calls from then on. limiter is
	// the limiter's name. rules are its rules, with all names filled in; Observe must
	// not change them. Observe may be called concurrently, for several limiters. New may return an error of the store
	// after it has called Observe; Reconfigure calls it only if nothing else is wrong.
	Observe(limiter string, rules []Rule) ObserverFuncs
}

// ObserverFuncs are the functions of an [Observer] for one limiter. A nil function is
// not called, and costs nothing.
//
// The limiter calls the functions while a request waits, concurrently, and while it
// holds no lock. So they must be quick: one that writes to a network hands its work to
// a goroutine of its own. A panic of a function is the request's panic.
type ObserverFuncs struct {
	// Decided is called once for each decision of Check, Take, Allow and Acquire. ctx is the
	// request's context, which may have ended. Peeks are no decisions.
	Decided func(ctx context.Context, o Observation)
	// Stored is called after each operation of a store. operation is "take", "peek",
	// "charge", "refund", "grant", "reset", "block", "release" or "renew". took is how long the store took. err is
	// nil if the store gave an answer, yes or no. The operations of a [Memory], which
	// take less time than the clock, are not observed. Nor are operations that have no answer
	// because the client has gone.
	Stored func(ctx context.Context, operation string, took time.Duration, err error)
	// Held is called after a request has been given slots of a rule with a limit of
	// [Leases], and again after it has given them back. rule is the rule's index, as
	// Observation.Rule is. slots is the number of slots: above 0 if they were given,
	// below 0 if they were given back. took is 0, and then how long the request has held
	// them. The sum of slots is what the requests of this process hold.
	Held func(ctx context.Context, rule int, slots int64, took time.Duration)
	// Queued is called with a change of 1 after a request has joined the line of a key of
	// a rule, and with -1 after it has left it: see [Limiter.Wait]. A request is in one
	// line at a time, and may go from one to another. Observation.Waited has how long it
	// has waited in all.
	Queued func(ctx context.Context, rule int, change int64)
	// Reported is called for events of a [Checker] around the limiter. Those of a login
	// guard are "denied", "failed", "succeeded", "suspected" and "canceled".
	Reported func(ctx context.Context, event string)
	// Keys asks for Observation.Key and Extra.
	Keys bool
}

// Observation is a decision as an [Observer] sees it.
type Observation struct {
	// Allowed, Reason, Degraded, Cost and Err are those of the Decision. Allowed is true
	// if the request would have been denied but for Config.DryRun.
	Allowed  bool
	Reason   Reason
	Degraded bool
	// DryRun reports that the request is allowed only because of Config.DryRun.
	DryRun bool
	// Rule is the deciding rule's index in the rules that Observe was given, and Limit
	// the index of the deciding limit in the rule's Limits: see Decision.Rule.
	// If no limit has decided, Rule is -1 and Limit is 0.
	Rule, Limit int
	Cost        int64
	// Remaining is the number of hits that are left, of Capacity hits at once:
	// the limit's Capacity, or that of the request's own quota, which may be Unlimited.
	// Both are 0 if no limit has decided.
	Remaining, Capacity int64
	// RetryAfter is the deciding limit's: 0 if it does not deny the request.
	RetryAfter time.Duration
	// Waited is how long the request has waited in line: see Decision.Waited.
	Waited time.Duration
	Err    error
	// Key and Extra are those of [Decision.Hit]: the deciding limit's key, and what
	// Hooks.KeyExtra has added. Both are "" unless ObserverFuncs.Keys is set. They may
	// hold what a client sent, such as a username.
	Key, Extra string
}

// observing calls the functions of an observer for one configuration.
type observing struct {
	ObserverFuncs

	snap *snapshot
}

// observedBy makes the snapshot call the functions of an observer, which may be nil.
func (s *snapshot) observedBy(o Observer) error {
	if o == nil {
		return nil
	}
	if isNil(reflect.ValueOf(o)) {
		return fmt.Errorf("%w: Observer: %T: is nil: must be an observer, or leave Observer out", ErrConfig, o)
	}
	rules := make([]Rule, len(s.rules))
	for i := range s.rules {
		rules[i] = s.rules[i].Rule
	}
	s.observer = &observing{o.Observe(s.name, rules), s}
	return nil
}

// decided tells the observer of a decision.
func (o *observing) decided(ctx context.Context, d *Decision) {
	if o.Decided == nil {
		return
	}
	seen := Observation{
		Allowed: d.Allowed, Reason: d.Reason, Degraded: d.Degraded, DryRun: d.DryRun, Rule: -1,
		Cost: d.Cost, Remaining: d.Remaining, RetryAfter: d.RetryAfter, Waited: d.Waited(), Err: d.Err,
	}
	if d.applied() {
		seen.Rule, seen.Limit, seen.Capacity = int(d.rule), int(d.limit), d.deciding().Capacity()
		if o.Keys {
			seen.Key, seen.Extra = openKey(d.key)
		}
	}
	o.Decided(ctx, seen)
}

// stored tells the observer of an operation of the store that began at start.
func (o *observing) stored(ctx context.Context, operation string, start time.Time, err error) {
	o.Stored(ctx, operation, time.Since(start), err)
}

// Report tells the limiter's observer of an event of a [Checker] around the limiter:
// see ObserverFuncs.Reported. event is one of a few constants of the checker, because
// an observer may keep a number for each.
func (l *Limiter) Report(ctx context.Context, event string) {
	if o := l.current.Load().observer; o != nil && o.Reported != nil {
		o.Reported(ctx, event)
	}
}

// tellsHeld reports whether the observer wants to know of leases.
func (s *snapshot) tellsHeld() bool { return s.observer != nil && s.observer.Held != nil }

// gained tells the observer of the leases of a record. Nobody else has the record yet, so
// that their end comes after it.
func (s *snapshot) gained(ctx context.Context, r *rest) {
	if s.tellsHeld() {
		r.since = time.Now()
		s.observer.holds(ctx, r, 1, 0)
	}
}

// heldFor returns how long a record has had its leases, 0 if no observer wants to know.
func (r *rest) heldFor() time.Duration {
	if r.since.IsZero() {
		return 0
	}
	return time.Since(r.since)
}

// gaveBack tells the observer that the leases of a record have ended, after a time.
func (s *snapshot) gaveBack(ctx context.Context, r *rest, took time.Duration) {
	if s.tellsHeld() {
		s.observer.holds(ctx, r, -1, took)
	}
}

// holds tells the observer of the slots of a record, once for each rule.
func (o *observing) holds(ctx context.Context, r *rest, sign int64, took time.Duration) {
	for _, it := range r.items {
		if o.snap.rules[it.rule].leases && it.cost > 0 {
			o.held(ctx, int(it.rule), sign*it.cost, took)
		}
	}
}

func (o *observing) held(ctx context.Context, rule int, slots int64, took time.Duration) {
	o.Held(ctx, rule, slots, took)
}

// queued tells the observer that a request has joined the line of a key of a rule, or left it.
func (s *snapshot) queued(ctx context.Context, rule int, change int64) {
	if o := s.observer; o != nil && o.Queued != nil {
		o.Queued(ctx, rule, change)
	}
}
