package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
