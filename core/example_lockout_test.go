package core_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
