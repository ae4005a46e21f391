package core_test

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
)

// At most two reports of a user are made at a time, and ten in an hour.
func ExampleInFlight() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.InFlight(2), core.PerHour(10)},
	}}}))
	alice := core.Hit{Rule: "user", Key: "alice"}
	report := func() (done func()) {
		d, release, err := limiter.Acquire(context.Background(), alice)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(d.Allowed, d.Limit())
		return release
	}
	first := report()
	defer report()()
	report()
	first()
	defer report()()
	// Output:
	// true 2 in flight
	// true 2 in flight
	// false 2 in flight
	// true 2 in flight
}

// Nothing is taken by a request that is denied, and its release does nothing.
func ExampleLimiter_Acquire() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "jobs", Limits: []core.Limit{core.InFlight(1)},
	}}}))
	work := func(job string) {
		d, release, err := limiter.Acquire(context.Background(), core.Hit{Rule: "jobs", Key: "nightly"})
		if err != nil || !d.Allowed {
			fmt.Println(job, "is not started:", err, d.Reason)
			return
		}
		defer release()
		fmt.Println(job, "runs")
	}
	work("backup")
	work("report")
	// Output:
	// backup runs
	// report runs
}

// A handler hands what it does on to a goroutine that outlives the request. The slot is
// free when that is done.
func ExampleDecision_Hold() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "user", Limits: []core.Limit{core.InFlight(1)},
	}}}))
	alice := core.Hit{Rule: "user", Key: "alice"}
	d, release, _ := limiter.Acquire(context.Background(), alice)
	defer release()
	done, held := d.Hold()
	fmt.Println(held)
	done()
	again, _ := limiter.Peek(context.Background(), 1, alice)
	fmt.Println(again.Remaining)
	// Output:
	// true
	// 1
}
