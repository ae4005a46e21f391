package observe

import (
	"context"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Join returns an observer that tells each of the observers, in order. Observers that
// are nil are left out. If one panics, those behind it are told all the same, and then
// the limiter logs the panic. An observer gets keys only if it has asked for them.
func Join(observers ...core.Observer) core.Observer {
	return joined(slices.DeleteFunc(slices.Clone(observers), func(o core.Observer) bool { return o == nil }))
}

type joined []core.Observer

// Observe implements [core.Observer].
func (j joined) Observe(limiter string, rules []core.Rule) (all core.ObserverFuncs) {
	parts := make([]core.ObserverFuncs, len(j))
	for i, o := range j {
		parts[i] = o.Observe(limiter, rules)
		all.Keys = all.Keys || parts[i].Keys
	}
	for _, p := range slices.Backward(parts) {
		if all.Keys && !p.Keys {
			p.Decided = withoutKeys(p.Decided)
		}
		all.Decided = joinDecided(p.Decided, all.Decided)
		all.Queued = joinQueued(p.Queued, all.Queued)
		all.Stored = joinStored(p.Stored, all.Stored)
		all.Reported = joinReported(p.Reported, all.Reported)
	}
	return all
}

func withoutKeys(f func(context.Context, core.Observation)) func(context.Context, core.Observation) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, o core.Observation) {
		o.Key, o.Extra = "", ""
		f(ctx, o)
	}
}

// The functions that join two of them defer the second: a panic of the first goes on
// after it.

func joinDecided(a, b func(context.Context, core.Observation)) func(context.Context, core.Observation) {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(ctx context.Context, o core.Observation) {
		defer b(ctx, o)
		a(ctx, o)
	}
}

func joinStored(a, b func(context.Context, string, time.Duration, error)) func(context.Context, string, time.Duration, error) {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(ctx context.Context, operation string, took time.Duration, err error) {
		defer b(ctx, operation, took, err)
		a(ctx, operation, took, err)
	}
}

func joinReported(a, b func(context.Context, string)) func(context.Context, string) {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(ctx context.Context, event string) {
		defer b(ctx, event)
		a(ctx, event)
	}
}

func joinQueued(a, b func(context.Context, int, int64)) func(context.Context, int, int64) {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return func(ctx context.Context, rule int, change int64) {
		defer b(ctx, rule, change)
		a(ctx, rule, change)
	}
}
