package peers

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Synced is the peer whose counts are exchanged.
const Synced = "floodgate, synced"

// floodgateSynced is ours with counts that are exchanged every second, to be seen
// beside the one that only counts in the process.
var floodgateSynced = Peer{
	Name: Synced, Module: ourModule,
	Synced: func(l Limit) (Allow, func()) {
		store := must(synced.New(&exchanged{counts: map[counter]int64{}}, synced.Config{Interval: time.Second, MaxKeys: 2 * l.keys(), Log: slog.New(slog.DiscardHandler)}))
		limiter := must(core.New(core.Config{
			Name:  "bench",
			Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{{Quota: int64(l.Quota), Window: l.Window, Aligned: true}}}},
			Store: store,
		}))
		return take(limiter), func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // nobody wants what was counted
			_ = store.Close(ctx)
		}
	},
}

// exchanged is a backend in this process, so that the exchange costs what the store
// does for it, and no server's time.
type exchanged struct {
	mu     sync.Mutex
	counts map[counter]int64
}

type counter struct {
	key    string
	window time.Duration
	start  int64
}

func counterOf(key string, window time.Duration, start time.Time) counter {
	return counter{key, window, start.UnixMicro()}
}

// PushDiffs implements [synced.Backend].
func (b *exchanged) PushDiffs(_ context.Context, batch synced.Batch) ([]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	totals := make([]int64, len(batch.Diffs))
	for i, d := range batch.Diffs {
		c := counterOf(d.Key, d.Window, d.Start)
		if totals[i] = b.counts[c] + d.Diff; d.Diff != 0 {
			b.counts[c] = totals[i]
		}
	}
	return totals, nil
}

// Counters implements [synced.Backend]. There are none when the store asks.
func (b *exchanged) Counters(context.Context, string, []time.Duration, time.Time) iter.Seq2[synced.Counter, error] {
	return func(func(synced.Counter, error) bool) {}
}

// Window implements [synced.Backend].
func (b *exchanged) Window(_ context.Context, _, key string, start time.Time, window time.Duration) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[counterOf(key, window, start)], nil
}
