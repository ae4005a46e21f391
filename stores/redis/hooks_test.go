package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// tracing counts the commands that it is shown, as tracing hooks do.
type tracing struct{ commands atomic.Int64 }

func (h *tracing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *tracing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (h *tracing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// What an application has hooked into its client sees each decision, with every
// version of go-redis: as one command.
func TestTheClientsHooksSeeEveryDecision(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close() //nolint:errcheck // the test is over
	h := new(tracing)
	client.AddHook(h)
	store := redisstore.New(client, redisstore.Timeout(5*time.Second))
	limiter := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(100)}}}}))
	if err := store.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := h.commands.Load()
	for range 10 {
		if _, err := limiter.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.commands.Load() - before; n != 10 || before == 0 {
		t.Errorf("the hook saw %d commands of 10 decisions, %d before", n, before)
	}
}
