package synced_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// shared is a backend in memory, with faults.
type shared struct {
	mu      sync.Mutex
	counts  map[synced.Counter]int64 // Count is 0 in the keys
	applied map[string]uint64
	latency time.Duration
	down    bool
	lose    int // so many answers are lost after the batch was applied
	largest int
	pushes  int
	diffs   int
	asked   int // differences, 0 among them
}

func newShared() *shared {
	return &shared{counts: map[synced.Counter]int64{}, applied: map[string]uint64{}}
}

var errDown = errors.New("down")

func (b *shared) set(f func(b *shared)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

func (b *shared) wait(ctx context.Context) error {
	b.mu.Lock()
	latency := b.latency
	b.mu.Unlock()
	if latency == 0 {
		return nil
	}
	select {
	case <-time.After(latency):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *shared) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pushes++
	b.asked += len(batch.Diffs)
	b.largest = max(b.largest, len(batch.Diffs))
	if b.down {
		return nil, errDown
	}
	node := batch.Namespace + "/" + batch.Node
	fresh := batch.Sequence == 0 || batch.Sequence > b.applied[node]
	totals := make([]int64, len(batch.Diffs))
	for i, d := range batch.Diffs {
		c := synced.Counter{Key: batch.Namespace + "/" + d.Key, Window: d.Window, Start: d.Start}
		if d.Diff != 0 {
			b.diffs++
			if fresh {
				b.counts[c] = max(0, b.counts[c]+d.Diff)
			}
		}
		totals[i] = b.counts[c]
	}
	if fresh && batch.Sequence > 0 {
		b.applied[node] = batch.Sequence
	}
	if b.lose > 0 {
		b.lose--
		return nil, errDown
	}
	return totals, nil
}

func (b *shared) Counters(_ context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	return func(yield func(synced.Counter, error) bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.down {
			yield(synced.Counter{}, errDown)
			return
		}
		for c, n := range b.counts {
			if !strings.HasPrefix(c.Key, namespace+"/") {
				continue
			}
			for _, w := range windows {
				if c.Window == w && at.Sub(c.Start) < 2*w && at.Sub(c.Start) >= 0 {
					c.Key, c.Count = c.Key[len(namespace)+1:], n
					if !yield(c, nil) {
						return
					}
				}
			}
		}
	}
}

func (b *shared) Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error) {
	if err := b.wait(ctx); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, errDown
	}
	return b.counts[synced.Counter{Key: namespace + "/" + key, Window: window, Start: start}], nil
}

// total returns the sum of all counters.
func (b *shared) total() (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.counts {
		n += c
	}
	return n
}

func newStore(t testing.TB, b synced.Backend, c synced.Config) *synced.Store {
	t.Helper()
	s := core.Must(synced.New(b, c))
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}
