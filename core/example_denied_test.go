package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Each denied attempt makes the wait longer. Whoever rests is let in again.
func ExampleLimit_countDenied() {
	now := time.Unix(1_764_000_000, 0)
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	limiter := core.Must(core.New(core.Config{
		Store: store,
		Rules: []core.Rule{{Name: "key", Key: core.TakeOnly, Limits: []core.Limit{
			{Quota: 1, Window: time.Minute, Algorithm: core.SlidingLog, CountDenied: true},
		}}},
	}))
	for range 3 {
		d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "key", Key: "ann"})
		fmt.Println(d.Allowed, d.RetryAfter)
		now = now.Add(40 * time.Second)
	}
	now = now.Add(20 * time.Second)
	fmt.Println(limiter.Allow(context.Background(), core.Hit{Rule: "key", Key: "ann"}))
	// Output:
	// true 0s
	// false 1m0s
	// false 1m0s
	// true
}
