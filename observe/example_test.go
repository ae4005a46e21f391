package observe_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
	slogobserve "github.com/floodgate-go/floodgate/observe/slog"
)

func ExampleNewCounts() {
	counts := observe.NewCounts()
	limiter := core.Must(core.New(core.Config{
		Name:     "jobs",
		Rules:    []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerSecond(5), core.PerHour(2)}}},
		Observer: counts,
	}))
	for range 5 {
		limiter.Allow(context.Background(), core.Hit{Rule: "tenant", Key: "42"})
	}
	for _, l := range counts.Read() {
		for _, n := range l.Limits {
			fmt.Println(l.Name, n.Limit, n.Allowed, n.Denied)
		}
	}
	// Output:
	// jobs tenant-1s 0 0
	// jobs tenant-1h 2 3
}

// Numbers for a dashboard, and a line in the log for who is denied.
func ExampleJoin() {
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	counts := observe.NewCounts()
	limiter := core.Must(core.New(core.Config{
		Rules:    []core.Rule{{Limits: []core.Limit{core.PerHour(2)}}},
		Observer: observe.Join(counts, core.Must(slogobserve.New(slogobserve.Config{Log: log}))),
	}))
	limiter.Allow(context.Background(), core.Hit{Rule: "default", Key: "42"})
	fmt.Println(counts.Read()[0].Limits[0].Allowed)
	// Output: 1
}

func ExampleBounds() {
	fmt.Println(observe.Bounds()[0], observe.Bounds()[len(observe.Bounds())-1])
	// Output: 250µs 1s
}

func ExampleRequestBounds() {
	fmt.Println(observe.RequestBounds()[0], observe.RequestBounds()[len(observe.RequestBounds())-1])
	// Output: 5ms 1m0s
}
