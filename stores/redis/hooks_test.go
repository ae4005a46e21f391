package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// tracing counts the commands that it is shown, as tracing hooks do.
type tracing struct{ commands, repeatable atomic.Int64 }

func (h *tracing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *tracing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.commands.Add(1)
		if !cmd.NoRetry() && strings.HasPrefix(cmd.Name(), "eval") { // not those that set up a connection
			h.repeatable.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (h *tracing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The hooks of the application's client see each decision as one command, which
// go-redis must not repeat.
func TestTheClientsHooksSeeEveryDecision(t *testing.T) {
	clients(t, func(t *testing.T, client redisstore.Client, _ *faultproxy.Proxy, _ *redistest.Server) {
		h := new(tracing)
		client.(interface{ AddHook(hook redis.Hook) }).AddHook(h)
		store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache())
		limiter := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(100)}}}}))
		for range 2 { // with EVAL, too: a server is new
			if _, err := limiter.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil {
				t.Fatal(err)
			}
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
		if n := h.repeatable.Load(); n != 0 {
			t.Errorf("the client may repeat %d of %d commands", n, h.commands.Load())
		}
	})
}

// If no command could be sent, the error does not say that one may have been charged.
func TestACommandThatCannotBeSentIsNotCharged(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	for name, client := range map[string]redis.UniversalClient{
		"Client": redis.NewClient(&redis.Options{Addr: nobody}),
		"Ring":   redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nobody}}),
		"ClusterClient": redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: redistest.Slots - 1, Nodes: []redis.ClusterNode{{Addr: nobody}}}}, nil
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			defer client.Close() //nolint:errcheck // the test is over
			err := storetest.Do(t.Context(), bind(t, client, hourly, redisstore.Timeout(patience)), core.OpTake, one("k", 1, 1))
			var e *redisstore.Error
			if !errors.As(err, &e) || e.Class != redisstore.ClassUnreachable || e.Unknown {
				t.Errorf("error %v, want one of an unreachable server, which was not charged", err)
			}
		})
	}
}
