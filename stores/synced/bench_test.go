package synced_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// A decision on one of 1,000 or 100,000 keys: with core.Memory, which only counts
// in the process, and with a store that exchanges all of them, every second or
// without a pause.
func BenchmarkTake(b *testing.B) {
	l := aligned(core.MaxQuota, time.Hour)
	for _, count := range []int{1000, 100_000} {
		keys := make([]string, count)
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		run := func(name string, newStore func(b *testing.B) core.Store) {
			b.Run(fmt.Sprintf("%d keys/%s", count, name), func(b *testing.B) {
				limiter := newLimiter(b, newStore(b), l)
				for _, key := range keys {
					take(b, limiter, key)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i = (i + 7919) % len(keys)
					if _, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "r", Key: keys[i]}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("in process", func(*testing.B) core.Store { return core.Must(core.NewMemory(core.MemoryConfig{})) })
		run("synced, local", func(b *testing.B) core.Store { return newStore(b, nil, synced.Config{Interval: -1}) })
		run("synced, exchanging every second", func(b *testing.B) core.Store {
			return newStore(b, newShared(), synced.Config{Interval: time.Second, Log: quiet})
		})
		run("synced, always exchanging", func(b *testing.B) core.Store {
			return newStore(b, newShared(), synced.Config{Interval: synced.MinInterval, Log: quiet})
		})
	}
}
