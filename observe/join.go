package observe

import (
	"context"
	"slices"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Join returns an observer that calls each of the observers, in order. Observers that are nil are
// left out. If one panics, those after it are not called, and the request panics.
func Join(observers ...core.Observer) core.Observer {
	return joined(slices.DeleteFunc(slices.Clone(observers), func(o core.Observer) bool { return o == nil }))
}

type joined []core.Observer

// Observe implements [core.Observer]. A function that no observer has stays nil.
func (j joined) Observe(limiter string, rules []core.Rule) (all core.ObserverFuncs) {
	var decided []func(context.Context, core.Decision, int, int)
	var queued []func(context.Context, int, int64)
	var stored []func(context.Context, string, time.Duration, error)
	var reported []func(context.Context, string)
	for _, o := range j {
		f := o.Observe(limiter, rules)
		if f.Decided != nil {
			decided = append(decided, f.Decided)
			all.Decided = func(ctx context.Context, d core.Decision, rule, limit int) {
				for _, f := range decided {
					f(ctx, d, rule, limit)
				}
			}
		}
		if f.Queued != nil {
			queued = append(queued, f.Queued)
			all.Queued = func(ctx context.Context, rule int, change int64) {
				for _, f := range queued {
					f(ctx, rule, change)
				}
			}
		}
		if f.Stored != nil {
			stored = append(stored, f.Stored)
			all.Stored = func(ctx context.Context, operation string, took time.Duration, err error) {
				for _, f := range stored {
					f(ctx, operation, took, err)
				}
			}
		}
		if f.Reported != nil {
			reported = append(reported, f.Reported)
			all.Reported = func(ctx context.Context, event string) {
				for _, f := range reported {
					f(ctx, event)
				}
			}
		}
	}
	return all
}
