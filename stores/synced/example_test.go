package synced_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Two processes that share counters, here in one program.
func ExampleNew() {
	backend := newShared() // in place of redisbackend.New(client) or pgbackend.New(pool)
	var stores [2]*synced.Store
	for i := range stores {
		var err error
		if stores[i], err = synced.New(&node{backend}, synced.Config{Interval: time.Hour}); err != nil {
			fmt.Println(err)
			return
		}
	}
	limiter := core.Must(core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{{Quota: 100, Window: 24 * time.Hour, Aligned: true}}}},
		Store: stores[0],
	}))
	for range 3 {
		_, _ = limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
	}
	fmt.Println("shared before Close:", backend.total())
	for _, s := range stores {
		_ = s.Close(context.Background())
	}
	fmt.Println("and after:", backend.total())
	// Output:
	// shared before Close: 0
	// and after: 3
}

func ExampleStore_Increment() {
	// Interval below 0: this process counts for itself.
	store := core.Must(synced.New(nil, synced.Config{Interval: -1, Windows: []time.Duration{24 * time.Hour}}))
	defer store.Close(context.Background()) //nolint:errcheck // nothing is left to push
	for range 3 {
		rate, err := store.Increment(context.Background(), "alice", 24*time.Hour, 10)
		fmt.Println(rate, err)
	}
	ahead, err := store.Rate(context.Background(), "alice", 24*time.Hour, 5)
	fmt.Println(ahead, err)
	// Output:
	// 10 <nil>
	// 20 <nil>
	// 30 <nil>
	// 35 <nil>
}

// Two processes exchange the keys that they use when Sync is called, and not before.
func ExampleStore_Sync() {
	backend := newShared() // in place of redisbackend.New(client) or pgbackend.New(pool)
	ctx := context.Background()
	var stores [2]*synced.Store
	for i := range stores {
		stores[i] = core.Must(synced.New(&node{backend}, synced.Config{Interval: time.Hour, Windows: []time.Duration{24 * time.Hour}}))
		defer stores[i].Close(ctx) //nolint:errcheck // nothing is left to push
	}
	_, _ = stores[0].Increment(ctx, "alice", 24*time.Hour, 3)
	fmt.Println(stores[1].Rate(ctx, "alice", 24*time.Hour, 0))
	for _, s := range stores {
		if err := s.Sync(ctx); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(stores[1].Rate(ctx, "alice", 24*time.Hour, 0))
	// Output:
	// 0 <nil>
	// 3 <nil>
}
