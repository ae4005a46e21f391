// Command algorithms shows how many requests of one client each algorithm allows.
//
//	go run ./examples/algorithms
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func main() {
	fmt.Println("algorithm         0:59  1:01  at most")
	for _, text := range []string{
		"100/m sliding_window", "100/m fixed_window", "100/m bucketed_window precision=1s", "100/m sliding_log", "100/m token_bucket burst=20",
	} {
		limit := core.Must(core.ParseLimits(text))[0]
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
		limiter := core.Must(core.New(core.Config{
			Rules: []core.Rule{{Name: "client", Limits: []core.Limit{limit}}},
			Store: store,
		}))
		send := func(n int) (allowed int) {
			for range n {
				d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "client", Key: "c"})
				if err == nil && d.Allowed {
					allowed++
				}
			}
			return allowed
		}
		send(1)
		now = now.Add(59 * time.Second)
		first := send(200)
		now = now.Add(2 * time.Second)
		second := send(200)
		fmt.Printf("%-16s  %4d  %4d  %7d\n", limit.Algorithm, first, second, limit.WorstCase())
	}
}
