// Package redisbackend keeps the counters of package synced in Redis.
//
//	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: 100 * time.Millisecond})
//
// All counters of a namespace have the same hash tag. So a Redis Cluster keeps
// them in one slot, and a batch is one script call; namespaces spread over the
// nodes. The names are "fgs1:{namespace}:…" and show nothing that a client sent.
// Counters expire by themselves.
package redisbackend

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/stores/synced"
)

//go:embed push.lua
var pushText string

var pushScript = redis.NewScript(pushText)

// Backend is a [synced.Backend] in Redis. It is made by [New].
type Backend struct{ client redis.UniversalClient }

var _ synced.Backend = (*Backend)(nil)

// New returns a backend on a client: of one server, a cluster or a failover
// group. Whoever made the client closes it. Its user needs the commands EVALSHA,
// EVAL, GET, SET, MGET and SCAN on keys fgs1:*, and in a cluster CLUSTER SLOTS.
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
	keys := append(make([]string, 0, len(batch.Diffs)+1), prefix(batch.Namespace)+"node:"+batch.Node)
	args := append(make([]any, 0, 2*len(batch.Diffs)+2), batch.Sequence, nodeLife.Milliseconds())
	for _, d := range batch.Diffs {
		keys = append(keys, counterName(batch.Namespace, d.Key, d.Window, d.Start))
		// Two lengths from the window's end, by the node's clock: what is left
		// of that is counted from now, whatever Redis's clock says.
		life := d.Start.Add(3*d.Window).Sub(batch.At) + time.Second
		args = append(args, d.Diff, max(life, time.Second).Milliseconds())
	}
	totals, err := pushScript.Run(ctx, b.client, keys, args...).Int64Slice()
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return totals, nil
}

// Counters implements [synced.Backend]. It goes through the names with SCAN,
// which does not hold up others.
func (b *Backend) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	wanted := map[string]time.Duration{}
	for _, w := range windows {
		wanted[strconv.FormatInt(w.Microseconds(), 10)] = w
	}
	return func(yield func(synced.Counter, error) bool) {
		err := b.scan(ctx, prefix(namespace), func(names []string) (counters []synced.Counter, kept []string) {
			for _, name := range names {
				if c, ok := parseName(name, wanted); ok && !c.Start.After(at) && at.Sub(c.Start) < 2*c.Window {
					counters, kept = append(counters, c), append(kept, name)
				}
			}
			return counters, kept
		}, func(c synced.Counter) bool { return yield(c, nil) })
		if err != nil {
			yield(synced.Counter{}, fmt.Errorf("redis: %w", err))
		}
	}
}

// scan yields the counters, of those whose names begin with prefix, that parse keeps.
func (b *Backend) scan(ctx context.Context, prefix string, parse func(names []string) ([]synced.Counter, []string), yield func(synced.Counter) bool) error {
	var node redis.Cmdable = b.client
	if cluster, ok := b.client.(*redis.ClusterClient); ok { // all names of a namespace are on one node
		master, err := cluster.MasterForKey(ctx, prefix)
		if err != nil {
			return err
		}
		node = master
	}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		names, next, err := node.Scan(ctx, cursor, prefix+"[0-9]*", 1000).Result()
		if err != nil {
			return err
		}
		cursor = next
		counters, kept := parse(names)
		if len(kept) == 0 {
			continue
		}
		values, err := node.MGet(ctx, kept...).Result()
		if err != nil {
			return err
		}
		for i, v := range values {
			text, _ := v.(string)
			if counters[i].Count, err = strconv.ParseInt(text, 10, 64); err == nil && !yield(counters[i]) {
				return nil
			}
		}
	}
	return nil
}

// parseName reads the name of a counter in one of the wanted windows.
func parseName(name string, wanted map[string]time.Duration) (c synced.Counter, ok bool) {
	_, rest, _ := strings.Cut(name, "}:")
	parts := strings.SplitN(rest, ":", 3)
	if len(parts) != 3 {
		return c, false
	}
	window, ok := wanted[parts[0]]
	start, err := strconv.ParseInt(parts[1], 10, 64)
	return synced.Counter{Key: parts[2], Window: window, Start: time.UnixMicro(start)}, ok && err == nil
}

// Window implements [synced.Backend].
func (b *Backend) Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error) {
	n, err := b.client.Get(ctx, counterName(namespace, key, window, start)).Int64()
	if err == redis.Nil { //nolint:errorlint // go-redis returns it as it is
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	return n, nil
}
