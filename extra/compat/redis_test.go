package compat

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// pipeliners are the two kinds of automatic pipelining that go-redis has since
// 9.23: many callers' commands are written together.
func pipeliners(tb testing.TB, o *redis.Options) map[string]redisstore.Client {
	tb.Helper()
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	blocking, err := c.AutoPipeline()
	if err != nil {
		tb.Fatal(err)
	}
	deferred, err := c.AsyncAutoPipeline()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = blocking.Close(); _ = deferred.Close() })
	return map[string]redisstore.Client{"client": c, "blocking": blocking, "deferred": deferred}
}

func TestAutomaticPipelining(t *testing.T) {
	for name, client := range pipeliners(t, &redis.Options{Addr: redistest.Start(t).Addr}) {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(_ testing.TB, clock func() time.Time) core.Store {
				opts := []redisstore.Option{redisstore.Timeout(20 * time.Second), redisstore.WithoutDenialCache()}
				if clock != nil {
					opts = append(opts, redisstore.Clock(clock))
				}
				return redisstore.New(client, opts...)
			})
		})
	}
}

// A cluster's pipeliner does not say that it is one: the first answer does.
func TestAutomaticPipeliningOfACluster(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	t.Cleanup(func() { _ = cluster.Close() })
	client, err := cluster.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	limiter := core.Must(core.New(core.Config{
		Name:  "cluster",
		Rules: []core.Rule{{Name: "a", Limits: []core.Limit{core.PerHour(5)}}, {Name: "b", Limits: []core.Limit{core.PerHour(5)}}},
		Store: redisstore.New(client, redisstore.Timeout(20*time.Second), redisstore.AnotherInstance()),
	}))
	for i := range 8 {
		d, err := limiter.Take(t.Context(), 1, core.Hit{Rule: "a", Key: "x"}, core.Hit{Rule: "b", Key: "y"})
		if err != nil || d.Allowed != (i < 5) {
			t.Fatalf("take %d: %v, %v", i, d, err)
		}
	}
}

// A reply to many commands at once is lost, and the client would
// send them again.
func TestALostReplyToAPipelineIsChargedOnce(t *testing.T) {
	server := redistest.Start(t)
	for _, name := range []string{"client", "blocking", "deferred"} {
		t.Run(name, func(t *testing.T) {
			proxy := faultproxy.Start(t, server.Addr)
			client := pipeliners(t, &redis.Options{Addr: proxy.Addr, MaxRetries: 5})[name]
			const callers = 20
			store := redisstore.New(client, redisstore.Timeout(2*time.Second), redisstore.WithoutDenialCache())
			limiter := core.Must(core.New(core.Config{
				Name: name, Store: store,
				Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(1000)}}},
			}))
			take := func() error {
				_, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
				return err
			}
			if err := take(); err != nil {
				t.Fatal(err)
			}
			proxy.Fail(faultproxy.Cut, 1)
			var failed atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					if take() != nil {
						failed.Add(1)
					}
				})
			}
			wg.Wait()
			d, err := limiter.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			charged := 1000 - d.Remaining
			if charged > callers+1 || charged < callers+1-failed.Load() || proxy.Lost() == 0 {
				t.Errorf("%d charged for %d takes, %d of which have failed; %d replies lost", charged, callers+1, failed.Load(), proxy.Lost())
			}
		})
	}
}
