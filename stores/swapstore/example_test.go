package swapstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// file is a Swapper for one process.
type file map[string]swapstore.Value

func (f file) Load(_ context.Context, names []string) ([]swapstore.Value, error) {
	values := make([]swapstore.Value, len(names))
	for i, n := range names {
		values[i] = f[n]
	}
	return values, nil
}

func (f file) Swap(_ context.Context, name string, old swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	if f[name].Version != old.Version {
		return false, nil
	}
	n, _ := old.Version.(int)
	f[name] = swapstore.Value{Value: value, Version: n + 1}
	return true, nil
}

func (f file) Delete(_ context.Context, names []string) error {
	for _, n := range names {
		delete(f, n)
	}
	return nil
}

func ExampleNew() {
	store, err := swapstore.New(file{}, swapstore.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := core.Must(core.New(core.Config{Name: "jobs", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5)}}}}))
	d, err := limiter.Take(context.Background(), 2, core.Hit{Rule: "r", Key: "k"})
	fmt.Println(d.Remaining, err)
	// Output: 3 <nil>
}
