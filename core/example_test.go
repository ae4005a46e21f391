package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
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

// A plan that starts again on the first of each month at midnight in Berlin.
func ExampleLimit_In() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 31, 21, 0, 0, 0, time.UTC) // in Berlin it is 23:00
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	limiter := core.Must(core.New(core.Config{
		Store: store,
		Rules: []core.Rule{{Name: "plan", Limits: []core.Limit{core.PerMonth(10_000).In(berlin)}}},
	}))
	d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "plan", Key: "customer"})
	fmt.Println(d.Remaining, d.ResetAfter, err)
	fmt.Println(core.PerDay(1000).In(berlin), core.PerHour(10).In(berlin).Validate())
	// Output:
	// 9999 1h0m0s <nil>
	// 1000 per day Europe/Berlin floodgate: configuration: Zone: Europe/Berlin: a window of 1h is not a day, a week or a month, and only these have a time zone
}

func ExamplePerDay() {
	fmt.Println(core.PerDay(1000), "/", core.PerDay(1000).In(time.UTC))
	// Output: 1000 per 1d / 1000 per day UTC
}

func ExamplePerWeek() {
	fmt.Println(core.PerWeek(5000), "/", core.PerWeek(5000).In(time.UTC))
	// Output: 5000 per 7d / 5000 per week UTC
}

func ExamplePerMonth() {
	fmt.Println(core.PerMonth(10_000))
	// Output: 10000 per month UTC
}

// Three wrong codes begin a wait; the next three a longer one.
func ExampleLockout() {
	now := time.Unix(1_764_000_000, 0)
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return now }}))
	codes := core.Must(core.New(core.Config{
		Name:  "codes",
		Store: store,
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{
			Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow,
			Lockout: core.Lockout{First: 30 * time.Second, Factor: 4, Max: time.Hour},
		}}}},
	}))
	for range 3 {
		for range 3 {
			_, _ = codes.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		}
		d, _ := codes.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		fmt.Println(d.Allowed, d.RetryAfter)
		now = now.Add(d.RetryAfter)
	}
	// Output:
	// false 30s
	// false 2m0s
	// false 8m0s
}

// Workers wait for their turn. One that has no time for it learns so at once.
func ExampleLimiter_Wait() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name:   "api",
		Limits: []core.Limit{{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket, Burst: 1}},
	}}}))
	hit := core.Hit{Rule: "api", Key: "partner"}
	for range 2 {
		d, err := limiter.Wait(context.Background(), 1, hit)
		fmt.Println(d.Allowed, d.Waited > 0, err)
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
		fmt.Println(d.Allowed, d.Waited > 0)
	}
	// Output:
	// true false
	// true true
	// true true
}

// A rule that counts failures. A client that goes away before it is answered
// has failed, too: StatusCanceled is between 400 and 499.
func ExampleOutcome() {
	rule := core.Rule{
		Name: "failures", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerMinute(5)},
		Counts: func(_ core.Request, o core.Outcome) bool { return o.Panicked || o.Status >= 400 && o.Status < 500 },
		Clears: func(_ core.Request, o core.Outcome) bool { return !o.Panicked && !o.Canceled && o.Status < 400 },
	}
	for _, o := range []core.Outcome{{Status: 200}, {Status: 401}, {Status: core.StatusCanceled, Canceled: true}} {
		fmt.Println(o.Status, rule.Counts(nil, o), rule.Clears(nil, o))
	}
	// Output:
	// 200 false true
	// 401 true false
	// 499 true false
}

// A program that is one of several processes does not start if its limiter
// counts for this process alone.
func ExampleLimiter_Guarantees() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerMinute(5)}}},
	}))
	if !limiter.Guarantees().Shared {
		fmt.Println("the limiter needs a shared store")
	}
	// Output: the limiter needs a shared store
}

// A limiter that guards secrets does not begin anew if its counters are damaged.
func ExampleConfig_denyUnreadable() {
	limiter, err := core.New(core.Config{
		Name:           "reset-password",
		Rules:          []core.Rule{{Name: "account", Limits: []core.Limit{core.PerHour(5)}}},
		DenyUnreadable: true,
	})
	fmt.Println(limiter.Name(), err)
	// Output: reset-password <nil>
}
