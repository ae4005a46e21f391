package core

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// observing is what a limiter needs to call the functions of its observer.
type observing struct {
	ObserverFuncs

	snap     *snapshot
	panicked *atomic.Bool // of the limiter: a panic has been logged
}

// observedBy makes the snapshot call the functions of an observer, which may be nil.
func (s *snapshot) observedBy(o Observer, panicked *atomic.Bool) (err error) {
	if o == nil {
		return nil
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if isNil(reflect.ValueOf(o)) { // not an error by itself: a nil pointer may have an Observe that needs no value
			err = fmt.Errorf("%w: Observer: %T: is nil: must be an observer, or leave Observer out", ErrConfig, o)
			return
		}
		err = fmt.Errorf("%w: Observer: %T: Observe panicked: %v", ErrConfig, o, p)
	}()
	rules := make([]Rule, len(s.rules))
	for i := range s.rules {
		rules[i] = s.rules[i].Rule
	}
	s.observer = &observing{o.Observe(s.name, rules), s, panicked}
	return nil
}

// caught ends the panic of an observer's function. It must be deferred itself.
func (o *observing) caught(ctx context.Context) {
	if p := recover(); p != nil && o.panicked.CompareAndSwap(false, true) {
		o.snap.logger().ErrorContext(ctx, "floodgate: the observer panicked; further panics are not logged", "panic", p)
	}
}

// decided tells the observer of a decision.
func (o *observing) decided(ctx context.Context, d *Decision) {
	if o.Decided == nil {
		return
	}
	rule, capacity, key, extra := -1, int64(0), "", ""
	if d.Rule != "" {
		rule, capacity = d.decidingRule(), d.Limit.capacity()
		switch {
		case !o.Keys:
		case d.record == nil && d.marks.raw: // decidingKey would say the same, and takes longer
			key = d.detail.key
		default:
			key, extra = d.decidingKey()
		}
	}
	defer o.caught(ctx)
	o.Decided(ctx, Observation{
		Allowed: d.Allowed, Reason: d.Reason, Degraded: d.Degraded, DryRun: d.DryRun,
		Rule: rule, Limit: int(d.marks.limit), Cost: d.Cost,
		Remaining: d.Remaining, Capacity: capacity, RetryAfter: d.RetryAfter, Waited: d.Waited,
		Err: d.Err, Key: key, Extra: extra,
	})
}

// tellOf tells the observer of a decision.
func (o *observing) tellOf(ctx context.Context, what *Observation) {
	defer o.caught(ctx)
	o.Decided(ctx, *what)
}

// errPanicked is the error of a decision in the middle of which a hook or key function panicked.
var errPanicked = errors.New("floodgate: a hook or key function panicked")

// lost counts a request of which a hook or key function has ended the Check by a panic, and tells the
// observer of it: of the decision that has been made, as a denial whose hook panics is one, or else of a failure.
func (l *Limiter) lost(s *snapshot, r Request, d *Decision) {
	if d.detail.snap == nil {
		*d = Decision{Reason: ReasonFailed, Limiter: s.name, Err: errPanicked}
		d.detail.snap = s
	}
	if !d.Allowed {
		d.DryRun = false // it would have been allowed
	}
	l.counts.count(d)
	if s.observer != nil {
		s.observer.decided(r.Context(), d)
	}
}

// stored tells the observer of an operation of the store that began at start.
func (o *observing) stored(ctx context.Context, operation string, start time.Time, err error) {
	took := time.Since(start)
	defer o.caught(ctx)
	o.Stored(ctx, operation, took, err)
}

// run does an operation of the store, and tells the observer if that wants to know.
func (s *snapshot) run(ctx context.Context, operation string, b *Batch, op func(context.Context, *Batch) error) error {
	if !s.timed {
		return op(ctx, b)
	}
	start := time.Now()
	err := op(ctx, b)
	if !canceled(ctx, err) {
		s.observer.stored(ctx, operation, start, err)
	}
	return err
}

// Report tells the limiter's observer of an event of a [Checker] around the limiter:
// see ObserverFuncs.Reported. event is one of a few constants of the checker, because
// an observer may keep a number for each.
func (l *Limiter) Report(ctx context.Context, event string) {
	if o := l.current.Load().observer; o != nil && o.Reported != nil {
		defer o.caught(ctx)
		o.Reported(ctx, event)
	}
}
