package resilient_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// values is a server that keeps values.
type values struct {
	mu  sync.Mutex
	all map[string]swapstore.Value
	n   int
}

func (v *values) Load(_ context.Context, names []string) (found []swapstore.Value, _ error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range names {
		found = append(found, v.all[name])
	}
	return found, nil
}

func (v *values) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.all)
}

func (v *values) Swap(_ context.Context, name string, old swapstore.Value, value []byte, _ time.Duration) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all[name].Version != old.Version {
		return false, nil
	}
	v.n++
	v.all[name] = swapstore.Value{Value: slices.Clone(value), Version: v.n}
	return true, nil
}

func (v *values) Delete(_ context.Context, names []string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range names {
		delete(v.all, name)
	}
	return nil
}
