package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A limiter for package level: a mistake in it ends the program at its start.
var signups = core.Must(core.New(core.Config{
	Name:  "signups",
	Rules: []core.Rule{{Name: "all", Limits: []core.Limit{{Quota: 1000, Window: 24 * time.Hour}}}},
}))

func ExampleMust() {
	d, err := signups.Take(context.Background(), 1, core.Hit{Rule: "all"})
	fmt.Println(d.Remaining, err)
	// Output: 999 <nil>
}

// A rule without a Key is only used by Take.
func ExampleRule_withoutKey() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "jobs", Limits: []core.Limit{core.PerMinute(5)}}}}))
	fmt.Println(limiter.Check(&request{})) // no request is concerned
	// Output: limiter "default" has no rule for this request
}

// What an adapter does with a Checker.
func ExampleChecker() {
	handle := func(c core.Checker, r core.Request, handler func() (status int)) int {
		d := c.Check(r)
		if !d.Allowed {
			return c.Deny(r, d).Status
		}
		status := handler()
		if d.NeedsOutcome() {
			c.Settle(r, d, core.Outcome{Status: status})
		}
		return status
	}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "failures", Key: static("alice"), Limits: []core.Limit{core.PerMinute(2)},
		Counts: func(_ core.Request, o core.Outcome) bool { return o.Status == 401 },
	}}}))
	for _, status := range []int{200, 200, 401, 401, 200} {
		fmt.Print(handle(limiter, &request{}, func() int { return status }), " ")
	}
	// Output: 200 200 401 401 429
}

func ExampleLimiter_Allow() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(2)}}}}))
	for range 3 {
		fmt.Println(limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: "42"}))
	}
	// Output:
	// true
	// true
	// false
}

func ExampleLimiter_Stats() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}))
	limiter.Check(&request{})
	limiter.Check(&request{})
	s := limiter.Stats()
	fmt.Println(s.Allowed, s.Denied)
	// Output: 1 1
}

func ExampleLimiter_Name() {
	fmt.Println(signups.Name())
	// Output: signups
}

func ExampleDefaultHooks() {
	fmt.Println(core.DefaultHooks{}.ShouldLimit(&request{method: "GET"}))
	fmt.Println(core.DefaultHooks{}.Cost(&request{}))
	// Output:
	// true
	// 1 <nil>
}

// One rule for each plan: the others skip.
func ExampleRule() {
	plan := func(name string) core.KeyFunc {
		return func(dst []byte, r core.Request) ([]byte, error) {
			if r.Method() != name { // stands for a look at the user's plan
				return dst, core.SkipRule
			}
			return append(dst, "user"...), nil
		}
	}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "free", Key: plan("free"), Limits: []core.Limit{core.PerHour(10)}},
		{Name: "paid", Key: plan("paid"), Limits: []core.Limit{core.PerHour(1000)}},
	}}))
	fmt.Println(limiter.Check(&request{method: "free"}).Remaining, limiter.Check(&request{method: "paid"}).Remaining)
	// Output: 9 999
}

func ExampleReason() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: fails(core.ErrBadRequest), Limits: []core.Limit{core.PerHour(10)}}}}))
	d := limiter.Check(&request{})
	fmt.Println(d.Reason, errors.Is(d.Err, core.ErrBadRequest))
	// Output: bad request true
}

func ExampleNever() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Key: static(""), Limits: []core.Limit{core.PerHour(0)}}}}))
	fmt.Println(limiter.Check(&request{}).RetryAfter == core.Never)
	// Output: true
}

func ExampleMemory_Evicted() {
	store := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 2}))
	limiter := core.Must(core.New(core.Config{Name: "jobs", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5)}}}}))
	for _, key := range []string{"a", "b", "c"} {
		_, _ = limiter.Take(context.Background(), 1, core.Hit{Rule: "r", Key: key})
	}
	fmt.Println(store.Len(), store.Evicted())
	// Output: 2 1
}

func ExampleMemory_Close() {
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	limiter := core.Must(core.New(core.Config{Name: "jobs", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5)}}}}))
	_ = store.Close()
	_, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "r"})
	fmt.Println(errors.Is(err, core.ErrClosed))
	// Output: true
}
