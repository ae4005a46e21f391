package redisstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// keysOfCommands counts commands, and those with several keys.
type keysOfCommands struct {
	all, several *atomic.Int64
	cluster      bool // those of one slot are one key
}

func (k keysOfCommands) inOneSlot(names []any) bool {
	for _, name := range names {
		if !k.cluster || redisstore.SlotOf(name.(string)) != redisstore.SlotOf(names[0].(string)) {
			return false
		}
	}
	return true
}

func (keysOfCommands) DialHook(next redis.DialHook) redis.DialHook { return next }

func (keysOfCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (k keysOfCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			k.all.Add(1)
			if names := cmd.Args()[3:]; cmd.Args()[2] != 1 && !k.inOneSlot(names[:cmd.Args()[2].(int)]) {
				k.several.Add(1)
			}
		}
		return next(ctx, cmd)
	}
}

// For a proxy that shards by key, and for a Ring, a command never has two keys,
// whoever else decides at the same time.
func TestAClientThatShardsByKeyGetsCommandsWithOneKey(t *testing.T) {
	addr := redistest.Start(t).Addr
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redis.UniversalClient{"proxy": newClient(t, addr), "Ring": ring} {
		t.Run(name, func(t *testing.T) {
			opts := []redisstore.Option{redisstore.Timeout(patience)}
			if name == "proxy" {
				opts = append(opts, redisstore.ShardedByKey())
			}
			hook := keysOfCommands{new(atomic.Int64), new(atomic.Int64), false}
			client.AddHook(hook)
			b := bind(t, client, hourly, opts...)
			together(100, func(i int) {
				batch := one(fmt.Sprint(i), 1, 1)
				batch.Items = append(batch.Items, one(fmt.Sprint("other", i), 1, 1).Items...)
				if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Errorf("allowed %v, error %v", batch.Allowed, err)
				}
				take(t, b, "same")
			})
			if n := hook.several.Load(); n > 0 || hook.all.Load() == 0 {
				t.Errorf("%d of %d commands have several keys", n, hook.all.Load())
			}
			if redisstore.New(client, opts...).Guarantees().OneStep {
				t.Error("the store promises to decide on several keys in one step")
			}
		})
	}
}

// On a cluster, only decisions on keys of one slot share a command.
func TestOnAClusterCommandsHaveKeysOfOneSlot(t *testing.T) {
	t.Parallel()
	_, client := newCluster(t)
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	hook := keysOfCommands{new(atomic.Int64), new(atomic.Int64), true}
	client.AddHook(hook)
	const callers = 200
	together(callers, func(i int) {
		take(t, b, fmt.Sprint(i))
		take(t, b, "same")
	})
	if n := hook.several.Load(); n > 0 || hook.all.Load() == 0 || hook.all.Load() >= 2*callers {
		t.Errorf("%d of %d commands of %d decisions have keys of several slots", n, hook.all.Load(), 2*callers)
	}
}
