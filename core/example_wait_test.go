package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Workers wait for their turn. One that has no time for it learns so at once.
func ExampleLimiter_Wait() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name:   "api",
		Limits: []core.Limit{{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket, Burst: 1}},
	}}}))
	hit := core.Hit{Rule: "api", Key: "partner"}
	for range 2 {
		d, err := limiter.Wait(context.Background(), 1, hit)
		fmt.Println(d.Allowed, d.Waited() > 0, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := limiter.Wait(ctx, 1, hit)
	fmt.Println(errors.Is(err, core.ErrWaitTooLong))
	// Output:
	// true false <nil>
	// true true <nil>
	// true
}

// A request over the limit waits for up to a minute, in line with the others of its key.
func ExampleConfig_maxWait() {
	limiter := core.Must(core.New(core.Config{
		MaxWait: time.Minute,
		Rules: []core.Rule{{
			Name: "api", Key: func(dst []byte, _ core.Request) ([]byte, error) { return append(dst, "partner"...), nil },
			Limits: []core.Limit{{Quota: 1, Window: 200 * time.Millisecond, Algorithm: core.FixedWindow}},
		}},
	}))
	for range 3 {
		d := limiter.Check(&request{})
		fmt.Println(d.Allowed, d.Waited() > 0)
	}
	// Output:
	// true false
	// true true
	// true true
}
