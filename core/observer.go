package core

import (
	"context"
	"time"
)

// Observer sees the decisions of limiters, for metrics, traces and logs. Package observe has
// some. One Observer may serve several limiters.
type Observer interface {
	// Observe returns the functions that a limiter calls. New and Reconfigure call it,
	// concurrently for different limiters. rules have all names filled in and must not be
	// changed. They come into force when it returns.
	Observe(limiter string, rules []Rule) ObserverFuncs
}

// ObserverFuncs are the functions of an [Observer] for one limiter. nil: not called.
//
// The limiter calls them concurrently, while a request waits and no lock is held: leave slow work
// to another goroutine. If a function panics, the request panics.
type ObserverFuncs struct {
	// Decided is called for each decision, except those of Peek and Grant. ctx is the request's
	// context, which may have ended. rule is the index of the deciding rule in the rules of
	// Observe, and limit that of the limit in the rule: -1 and 0 if no limit applied.
	Decided func(ctx context.Context, d Decision, rule, limit int)
	// Stored is called after each operation of a store, such as "take": see [Op]. It is not called
	// for a [Memory], nor if the client left before the answer.
	Stored func(ctx context.Context, operation string, took time.Duration, err error)
	// Queued is called with a change of 1 if a request joins the line of a key of a rule, and
	// with -1 if it leaves: see [Limiter.Wait].
	Queued func(ctx context.Context, rule int, change int64)
	// Reported is called for the events of [Limiter.Report].
	Reported func(ctx context.Context, event string)
}

// Report tells the observer of an event of a [Checker] around the limiter. event must be a
// constant: an observer may keep a counter for each.
func (l *Limiter) Report(ctx context.Context, event string) {
	if reported := l.current.Load().observer.Reported; reported != nil {
		reported(ctx, event)
	}
}

// queued tells the observer that a request has joined the line of a key of a rule, or left it.
func (s *snapshot) queued(ctx context.Context, rule int, change int64) {
	if s.observer.Queued != nil {
		s.observer.Queued(ctx, rule, change)
	}
}
