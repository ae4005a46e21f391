package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// gone is a shared store that cannot be reached, as a redisstore without its Redis.
type gone struct{}

func (gone) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}
}

func (gone) Open(string, []core.StoreRule) (core.Counters, error) { return goneCounters{}, nil }

type goneCounters struct{}

func (goneCounters) Do(context.Context, *core.Batch) error { return errors.New("connection refused") }

func (c goneCounters) Reopen([]core.StoreRule) (core.Counters, error) { return c, nil }

var discard = slog.New(slog.DiscardHandler)

// Four instances share a limit of 8. While the shared store is gone, each allows a quarter of it.
func ExampleNew() {
	store := core.Must(resilient.New(gone{}, resilient.Config{Instances: 4, Log: discard}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(8)}}},
		Store: store,
	}))
	for range 3 {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		fmt.Println(d.Allowed, d.Degraded, err)
	}
	// Output:
	// true true <nil>
	// true true <nil>
	// false true <nil>
}

func ExampleMode() {
	for _, mode := range []resilient.Mode{resilient.Local, resilient.FailOpen, resilient.FailClosed} {
		store := core.Must(resilient.New(gone{}, resilient.Config{OnFailure: mode, Log: discard}))
		limiter := core.Must(core.New(core.Config{
			Name:  "api",
			Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}},
			Store: store,
			Log:   discard,
		}))
		fmt.Print(mode, ":")
		for range 2 {
			d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
			fmt.Print(" ", d.Reason, ";")
		}
		fmt.Println()
		_ = store.Close()
	}
	// Output:
	// local: within limits; over limit;
	// fail open: within limits; within limits;
	// fail closed: failed; failed;
}

// The defaults, written out, for an application of up to 8 instances.
func ExampleConfig() {
	store := core.Must(resilient.New(gone{}, resilient.Config{
		OnFailure: resilient.Local,
		Instances: 8, // the largest number that may run
		MaxKeys:   core.DefaultMaxKeys,
		Failures:  resilient.DefaultFailures,
		Retry:     resilient.DefaultRetry,
		Timeout:   resilient.DefaultTimeout, // the default if the store keeps no deadline by itself
		Log:       slog.Default(),
		Clock:     time.Now,
	}))
	defer store.Close() //nolint:errcheck // never fails
	fmt.Println(store.Guarantees().OnFailure)
	// Output:
	// local
}

func ExampleChange() {
	store := core.Must(resilient.New(gone{}, resilient.Config{
		Failures: 1, Log: discard,
		OnChange: func(c resilient.Change) { fmt.Println("up:", c.Up, c.Err) },
	}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}}, Store: store}))
	_, _ = limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
	fmt.Println(store.Up())
	// Output:
	// up: false resilient: connection refused
	// false
}

// A block without the store holds in this process only.
func ExampleStore() {
	store := core.Must(resilient.New(gone{}, resilient.Config{Log: discard}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}}, Store: store}))
	err := limiter.Block(context.Background(), time.Hour, core.Hit{Rule: "user", Key: "mallory"})
	fmt.Println(errors.Is(err, core.ErrDegraded))
	// Output:
	// true
}

// With FailClosed, the caller of a limiter can tell an open circuit from a failure.
func Example_errDown() {
	store := core.Must(resilient.New(gone{}, resilient.Config{OnFailure: resilient.FailClosed, Failures: 1, Log: discard}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}}, Store: store, Log: discard}))
	for range 2 {
		_, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		fmt.Println(err, errors.Is(err, resilient.ErrDown))
	}
	// Output:
	// resilient: connection refused false
	// resilient: the store does not answer true
}

// halves is a store of two servers, of which the first is gone. A key is on the one that it begins with.
type halves struct{ gone }

func (halves) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := core.Must(core.NewMemory(core.MemoryConfig{})).Open(limiter, rules)
	return halvesCounters{c}, err
}

type halvesCounters struct{ core.Counters }

func (halvesCounters) ServerOf(_ int, key []byte) string { return "server " + string(key[:1]) }

func (c halvesCounters) Do(ctx context.Context, b *core.Batch) error {
	if b.Items[0].Key[0] == '1' {
		return errors.New("connection refused")
	}
	return c.Counters.Do(ctx, b)
}

func ExampleLocator() {
	var _ resilient.Locator = halvesCounters{}
	store := core.Must(resilient.New(halves{}, resilient.Config{
		Failures: 1, Log: discard,
		OnChange: func(c resilient.Change) { fmt.Println(c.Server, "up:", c.Up) },
	}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(10)}}}, Store: store}))
	for _, key := range []string{"1-alice", "2-bob"} {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: key})
		fmt.Println(key, d.Degraded, err)
	}
	// Output:
	// server 1 up: false
	// 1-alice true <nil>
	// 2-bob false <nil>
}
