package login

import (
	"context"
	"errors"
	"sync"

	"github.com/floodgate-go/floodgate/core"
)

// observer stands between the guard's limiter and Config.Observer. The limiter may
// decide several times on an attempt; Config.Observer is told of the guard's decision.
type observer struct {
	core.Observer

	identify bool
	decided  func(context.Context, core.Observation) // of Observer; nil: it does not want to know
	panics   sync.Once
}

// Observe implements core.Observer.
func (o *observer) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	f := o.Observer.Observe(limiter, rules)
	f.Keys = f.Keys && o.identify
	if o.decided = f.Decided; o.decided != nil {
		f.Decided = func(ctx context.Context, seen core.Observation) {
			if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
				a.seen = seen // Guard.Check passes it on
			} else {
				o.decided(ctx, seen)
			}
		}
	}
	return f
}

// observed returns the limiter's observer, nil for none.
func (g *Guard) observed() core.Observer {
	if g.observer == nil {
		return nil
	}
	return g.observer
}

// observe tells Config.Observer of the guard's decision on an attempt.
func (g *Guard) observe(a *attempt, d *core.Decision) {
	if g.observer == nil || g.observer.decided == nil {
		return
	}
	seen := a.seen
	if seen.Allowed && !d.Allowed { // the limiter has allowed the attempt, and OnSuspicion has not
		seen.Allowed, seen.Reason, seen.Err, seen.RetryAfter = false, d.Reason, d.Err, d.RetryAfter
		seen.Rule, seen.Limit, seen.Remaining, seen.Capacity, seen.Key, seen.Extra = -1, 0, 0, 0, "", ""
	}
	defer func() {
		if p := recover(); p != nil {
			g.observer.panics.Do(func() {
				g.config.Log.Error("login: the observer panicked; further panics are not logged", "limiter", g.config.Name, "panic", p)
			})
		}
	}()
	g.observer.decided(a.Request.Context(), seen)
}

var errPanicked = errors.New("login: a hook panicked")

// lost counts an attempt of which a hook or key function has ended the Check by a panic, and tells
// Config.Observer of it: of a denial if a limit has denied it, or else of a failure. d is the last decision of
// the limiter that has returned.
func (g *Guard) lost(a *attempt, d *core.Decision) {
	if d.Allowed {
		g.tally.overruled.Add(1)
		d = &core.Decision{Reason: core.ReasonFailed, Err: errPanicked}
	}
	g.observe(a, d)
}

// Context implements core.Request. An observer finds the attempt in it.
func (a *attempt) Context() context.Context {
	if a.guard.observer == nil {
		return a.Request.Context()
	}
	return attemptContext{a.Request.Context(), a}
}

// attemptContext is the context of an attempt that is observed.
type attemptContext struct {
	context.Context //nolint:containedctx // it is one

	a *attempt
}

// Value implements context.Context.
func (c attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.a
	}
	return c.Context.Value(key)
}
