package synced_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// A decision in the process alone, and beside exchanges of 100,000 keys.
func BenchmarkTake(b *testing.B) {
	run := func(name string, s core.Store, l core.Limit) {
		b.Run(name, func(b *testing.B) {
			limiter := newLimiter(b, s, l)
			keys := make([]string, 100_000)
			for i := range keys {
				keys[i] = fmt.Sprint("key", i)
				take(b, limiter, keys[i])
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
	l := aligned(core.MaxQuota, time.Hour)
	run("in process", core.Must(core.NewMemory(core.MemoryConfig{})), l)
	run("synced, local", newStore(b, nil, synced.Config{Interval: -1}), l)
	run("synced, exchanging every second", newStore(b, newShared(), synced.Config{Interval: time.Second, Log: quiet}), l)
}
