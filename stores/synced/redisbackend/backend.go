// Package redisbackend keeps the counters of package synced in Redis.
//
//	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: 100 * time.Millisecond})
//
// All counters of a namespace have the same hash tag. So a Redis Cluster keeps them in one
// slot, and a batch is one script call; namespaces spread over the nodes. The names are
// "fgs1:{namespace}:…" and show nothing that a client sent. Counters expire by themselves.
package redisbackend

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/stores/synced"
)

//go:embed push.lua
var pushText string

var pushHash = redis.NewScript(pushText).Hash()

// Backend is a [synced.Backend] in Redis. It is made by [New].
type Backend struct{ client redis.UniversalClient }

var _ synced.Backend = (*Backend)(nil)

// New returns a backend on a client: of one server, a cluster or a failover group. The caller closes
// the client. Set ContextTimeoutEnabled in its options: otherwise a command to a Redis that hangs
// ignores synced.Config.Timeout and the context of synced.Store.Close. The Redis user needs the
// commands EVALSHA, EVAL, GET, SET, MGET and SCAN on keys fgs1:*, and in a cluster CLUSTER SLOTS.
func New(client redis.UniversalClient) *Backend { return &Backend{client} }

// nodeLife is how long a node's last sequence is kept. A batch that is pushed
// again after that, with no other batch in between, is applied twice.
const nodeLife = 24 * time.Hour

// prefix begins the names of a namespace.
func prefix(namespace string) string { return "fgs1:{" + namespace + "}:" }

func counterName(namespace, key string, window time.Duration, start time.Time) string {
	return fmt.Sprintf("%s%d:%d:%s", prefix(namespace), window.Microseconds(), start.UnixMicro(), key)
}

// PushDiffs implements [synced.Backend] with one script call.
func (b *Backend) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	keys, args := []any{prefix(batch.Namespace) + "node:" + batch.Node}, []any{batch.Sequence, nodeLife.Milliseconds()}
	for _, d := range batch.Diffs {
		keys = append(keys, counterName(batch.Namespace, d.Key, d.Window, d.Start))
		// Two lengths from the window's end, by the node's clock: what is left
		// of that is counted from now, whatever Redis's clock says.
		life := d.Start.Add(3*d.Window).Sub(batch.At) + time.Second
		args = append(args, d.Diff, max(life, time.Second).Milliseconds())
	}
	run := func(command, script string) ([]int64, error) {
		cmd := push{redis.NewCmd(ctx, slices.Concat([]any{command, script, len(keys)}, keys, args)...), batch.Sequence}
		_ = b.client.Process(ctx, cmd)
		return cmd.Int64Slice()
	}
	totals, err := run("EVALSHA", pushHash)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		totals, err = run("EVAL", pushText)
	}
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return totals, nil
}

// push is a command with a batch. go-redis sends it again after a lost reply only if the
// batch has a sequence: the script would apply another one twice.
type push struct {
	*redis.Cmd
	sequence uint64
}

// NoRetry implements redis.Cmder.
func (p push) NoRetry() bool { return p.sequence == 0 }

// Counters implements [synced.Backend]. It goes through the names with SCAN,
// which does not hold up others. In a cluster, go-redis sends it to the node that has the namespace.
func (b *Backend) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	return func(yield func(synced.Counter, error) bool) {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			names, next, err := b.client.Scan(ctx, cursor, prefix(namespace)+"[0-9]*", 1000).Result()
			var counters []synced.Counter
			if err == nil {
				counters, err = b.read(ctx, names, windows, at)
			}
			if err != nil {
				yield(synced.Counter{}, fmt.Errorf("redis: %w", err))
				return
			}
			for _, c := range counters {
				if !yield(c, nil) {
					return
				}
			}
			cursor = next
		}
	}
}

// read reads those of the counters that are of these windows and current at a time, or were
// the ones before.
func (b *Backend) read(ctx context.Context, names []string, windows []time.Duration, at time.Time) (counters []synced.Counter, err error) {
	var kept []string
	for _, name := range names {
		c := parseName(name)
		if age := at.Sub(c.Start); slices.Contains(windows, c.Window) && age >= 0 && age < 2*c.Window {
			counters, kept = append(counters, c), append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	counts, err := b.get(ctx, kept...)
	for i, n := range counts {
		counters[i].Count = n
	}
	return counters, err
}

// get returns the values of counters. As in push.lua, somebody else's value counts as 0.
func (b *Backend) get(ctx context.Context, names ...string) ([]int64, error) {
	values, err := b.client.MGet(ctx, names...).Result() // of a value that is no string, nil
	counts := make([]int64, len(values))
	for i, v := range values {
		text, _ := v.(string)
		if n, err := strconv.ParseUint(text, 10, 53); err == nil {
			counts[i] = int64(n) //nolint:gosec // below 2^53
		}
	}
	return counts, err
}

// parseName reads the name of a counter. The Window or Start of another name is 0.
func parseName(name string) synced.Counter {
	_, rest, _ := strings.Cut(name, "}:")
	parts := strings.SplitN(rest, ":", 3)
	if len(parts) != 3 {
		return synced.Counter{}
	}
	window, _ := strconv.ParseInt(parts[0], 10, 64)
	start, _ := strconv.ParseInt(parts[1], 10, 64)
	return synced.Counter{Key: parts[2], Window: time.Duration(window) * time.Microsecond, Start: time.UnixMicro(start)}
}

// Window implements [synced.Backend].
func (b *Backend) Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error) {
	counts, err := b.get(ctx, counterName(namespace, key, window, start))
	if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	return counts[0], nil
}
