package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// gone is a shared store that cannot be reached.
type gone struct{ core.Store }

type goneBound struct{ core.Bound }

func (gone) Bind(string, []core.StoreRule) (core.Bound, error) { return goneBound{}, nil }

func (goneBound) Take(context.Context, *core.Batch) error { return errors.New("connection refused") }

// Four instances share a limit of 8; while the shared store is gone, each
// admits a quarter of it.
func ExampleNew() {
	store := core.Must(resilient.New(gone{}, resilient.Config{
		Instances: 4,
		Log:       slog.New(slog.DiscardHandler),
		OnChange:  func(c resilient.Change) { fmt.Println("up:", c.Up, c.Err) },
	}))
	defer store.Close() //nolint:errcheck // never fails
	limiter := core.Must(core.New(core.Config{
		Name:  "api",
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(8)}}},
		Store: store,
	}))
	for range 5 {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
		fmt.Println(d.Allowed, d.Degraded, err)
	}
	// Output:
	// true true <nil>
	// true true <nil>
	// false true <nil>
	// false true <nil>
	// up: false resilient: connection refused
	// false true <nil>
}
