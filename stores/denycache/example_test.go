package denycache_test

import (
	"context"
	"fmt"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

func ExampleNew() {
	shared := core.Must(core.NewMemory(core.MemoryConfig{})) // in place of one over the network
	store := core.Must(denycache.New(shared, denycache.Config{}))
	limiter := core.Must(core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(2)}}},
		Store: store,
	}))
	for range 5 {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		fmt.Println(d.Allowed, err)
	}

	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// false <nil>
	// false <nil>
}
