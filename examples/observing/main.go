// Command observing counts what a limiter decides, by rule and result.
//
//	go run ./examples/observing
package main

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

func main() {
	counts := observe.NewCounts()
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerHour(3)}}},
		Observer: counts, // or promobserve.New(), or that of otelobserve.New
	}))
	for range 5 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	for result := range counts.Read()[0].Results() {
		if result.Count > 0 {
			fmt.Println(result.Rule, result.Limit, result.Result, result.Count)
		}
	}
}
