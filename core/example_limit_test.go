package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A token bucket with a burst lets that many hits through at once.
func ExampleLimit_Capacity() {
	l := core.Limit{Quota: 100, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 20}
	fmt.Println(l.Capacity(), core.PerMinute(100).Capacity())
	// Output: 20 100
}

// A token bucket is full again after Window × Burst / Quota.
func ExampleLimit_Lifetime() {
	fmt.Println(core.PerMinute(100).Lifetime(), core.Limit{Quota: 60, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 5}.Lifetime())
	// Output: 2m0s 5.000001s
}

// An operator lets a client back in whose request was denied, whatever its key is made of.
func ExampleDecision_Hit() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.PerMinute(1)},
	}}}))
	ctx := context.Background()
	alice := core.Hit{Rule: "user", Key: "alice", Extra: "tenant 7"}
	limiter.Allow(ctx, alice)
	denied, _ := limiter.Take(ctx, 1, alice)

	_ = limiter.Reset(ctx, denied.Hit())
	fmt.Println(limiter.Allow(ctx, alice))
	// Output: true
}
