// Command performance counts the allocations of a decision.
//
//	go run ./examples/performance
package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

func main() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerHour(1_000_000)}},
	}}))
	ctx := context.Background()
	allocations := testing.AllocsPerRun(1000, func() {
		_, _ = limiter.Take(ctx, 1, core.Hit{Rule: "user", Key: "42"})
	})
	fmt.Println(allocations, "allocations a decision")
}
