package core_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// observeFunc is an Observer of one function.
type observeFunc func(limiter string, rules []core.Rule) core.ObserverFuncs

func (f observeFunc) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	return f(limiter, rules)
}

// BenchmarkObserved measures what an observer adds that counts into one number.
func BenchmarkObserved(b *testing.B) {
	var allowed atomic.Int64
	counting := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Decided: func(_ context.Context, o core.Observation) {
			if o.Allowed {
				allowed.Add(1)
			}
		}}
	})
	rules := []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1_000_000_000)}}}
	for _, c := range []struct {
		name     string
		observer core.Observer
	}{{"none", nil}, {"counting", counting}} {
		l, ctx := core.Must(core.New(core.Config{Rules: rules, Observer: c.observer})), context.Background()
		b.Run("take/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "key"})
			}
		})
		b.Run("allow/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = l.Allow(ctx, core.Hit{Rule: "k", Key: "key"})
			}
		})
	}
}
