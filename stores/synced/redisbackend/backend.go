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
	"slices"
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
// EVAL, GET, SET, MGET and SCAN on keys fgs1:*.
func New(client redis.UniversalClient) *Backend { return &Backend{client} }

// Server names the server and its database, so that package synced can tell
// whether two backends lead to the same one.
func (b *Backend) Server() string {
	switch c := b.client.(type) {
	case *redis.Client:
		o := c.Options()
		return fmt.Sprintf("redis %s/%d", o.Addr, o.DB)
	case *redis.ClusterClient:
		return fmt.Sprintf("redis cluster %s", slices.Sorted(slices.Values(c.Options().Addrs)))
	}
	return fmt.Sprintf("redis client %p", b.client)
}

const prefix = "fgs1:"

// nodeLife is how long a node's last sequence is kept. A batch that is pushed
// again after that, with no other batch in between, is applied twice.
const nodeLife = 24 * time.Hour

func counterName(namespace, key string, window time.Duration, start time.Time) string {
	return fmt.Sprintf("%s{%s}:%d:%d:%s", prefix, namespace, window.Microseconds(), start.UnixMicro(), key)
}

// PushDiffs implements [synced.Backend] with one script call.
func (b *Backend) PushDiffs(ctx context.Context, batch synced.Batch) ([]int64, error) {
	keys := append(make([]string, 0, len(batch.Diffs)+1), fmt.Sprintf("%s{%s}:node:%s", prefix, batch.Namespace, batch.Node))
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
	return func(yield func(synced.Counter, error) bool) {
		wanted := map[time.Duration]bool{}
		for _, w := range windows {
			wanted[w] = true
		}
		more := true
		scan := func(ctx context.Context, c redis.Cmdable) error {
			match := prefix + "{" + namespace + "}:[0-9]*"
			for cursor := uint64(0); more; {
				names, next, err := c.Scan(ctx, cursor, match, 1000).Result()
				if err != nil {
					return err
				}
				if err := b.yield(ctx, names, wanted, at, func(c synced.Counter) bool {
					more = yield(c, nil)
					return more
				}); err != nil {
					return err
				}
				if cursor = next; cursor == 0 {
					break
				}
			}
			return nil
		}
		var err error
		if cluster, ok := b.client.(*redis.ClusterClient); ok {
			// All names of a namespace are in one slot, and so on one node.
			var node *redis.Client
			if node, err = cluster.MasterForKey(ctx, prefix+"{"+namespace+"}"); err == nil {
				err = scan(ctx, node)
			}
		} else {
			err = scan(ctx, b.client)
		}
		if err != nil && more {
			yield(synced.Counter{}, fmt.Errorf("redis: %w", err))
		}
	}
}

// yield yields those of the counters that are wanted.
func (b *Backend) yield(ctx context.Context, names []string, wanted map[time.Duration]bool, at time.Time, yield func(synced.Counter) bool) error {
	var counters []synced.Counter
	var kept []string
	for _, name := range names {
		c, ok := parseName(name)
		if age := at.Sub(c.Start); ok && wanted[c.Window] && age < 2*c.Window && age >= 0 {
			counters, kept = append(counters, c), append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	values, err := b.client.MGet(ctx, kept...).Result()
	if err != nil {
		return err
	}
	for i, v := range values {
		text, ok := v.(string)
		if n, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			counters[i].Count = n
			if !yield(counters[i]) {
				return nil
			}
		}
	}
	return nil
}

func parseName(name string) (c synced.Counter, ok bool) {
	_, rest, found := strings.Cut(name, "}:")
	parts := strings.SplitN(rest, ":", 3)
	if !found || len(parts) != 3 {
		return c, false
	}
	window, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || window <= 0 || window > (1<<63-1)/1000 {
		return c, false
	}
	start, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return c, false
	}
	return synced.Counter{Key: parts[2], Window: time.Duration(window) * time.Microsecond, Start: time.UnixMicro(start)}, true
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
