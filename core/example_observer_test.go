package core_test

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// denials prints which limits deny requests.
type denials struct{}

func (denials) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{
		Decided: func(_ context.Context, o core.Observation) {
			if o.Reason == core.ReasonOverLimit {
				fmt.Println("denied:", limiter, rules[o.Rule].Limits[o.Limit].Name)
			}
		},
		Reported: func(_ context.Context, event string) { fmt.Println("reported:", limiter, event) },
	}
}

func ExampleObserver() {
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerSecond(5), core.PerHour(1)}}},
		Observer: denials{},
	}))
	for range 2 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	// Output: denied: jobs tenant-1h
}

// A checker around a limiter tells the limiter's observer what it has found out.
func ExampleLimiter_Report() {
	limiter := core.Must(core.New(core.Config{
		Name:     "uploads",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(1)}}},
		Observer: denials{},
	}))
	limiter.Report(context.Background(), "virus")
	// Output: reported: uploads virus
}
