package redisstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// instances returns limiters of one name, as if each were in a process of its
// own, with a denial cache each and one clock.
func instances(t *testing.T, n int, newClient func() redisstore.Client, rules ...core.Rule) ([]*core.Limiter, *storetest.Clock) {
	t.Helper()
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	limiters := make([]*core.Limiter, n)
	for i := range limiters {
		limiters[i] = core.Must(core.New(core.Config{
			Name: "api", Rules: rules,
			Store: redisstore.New(newClient(), redisstore.Clock(clock.Now), redisstore.Timeout(patience), redisstore.AnotherInstance()),
		}))
	}
	return limiters, clock
}

func perHour(rule string, n int64) core.Rule {
	return core.Rule{Name: rule, Limits: []core.Limit{{Quota: n, Window: time.Hour, Algorithm: core.FixedWindow}}}
}

// A Reset by one instance is noticed within a second by the others, which have
// just denied the key.
func TestAResetIsNoticedByOtherInstances(t *testing.T) {
	server := redistest.Start(t)
	limiters, clock := instances(t, 3, func() redisstore.Client { return newClient(t, server.Addr) }, perHour("user", 1))
	hit := core.Hit{Rule: "user", Key: "alice"}
	for round := range 5 {
		for range 3 {
			for _, l := range limiters {
				if _, err := l.Take(t.Context(), 1, hit); err != nil {
					t.Fatal(err)
				}
			}
			clock.Advance(100 * time.Millisecond)
		}
		if err := limiters[round%3].Reset(t.Context(), hit); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
		for i, l := range limiters {
			if d, err := l.Take(t.Context(), 1, hit); err != nil || !d.Allowed {
				t.Errorf("round %d, instance %d: %v, %v a second after the reset", round, i, d, err)
			}
			if err := l.Reset(t.Context(), hit); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A flood of one denied key costs Redis about a command a second.
func TestAFloodOfDeniedRequestsCostsFewCommands(t *testing.T) {
	server := redistest.Start(t)
	limiters, clock := instances(t, 1, func() redisstore.Client { return newClient(t, server.Addr) }, perHour("user", 1))
	hit := core.Hit{Rule: "user", Key: "alice"}
	_, _ = limiters[0].Take(t.Context(), 1, hit)
	server.MustDo("config", "resetstat")
	for range 10_000 { // in ten seconds
		if d, err := limiters[0].Take(t.Context(), 1, hit); err != nil || d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
		clock.Advance(time.Millisecond)
	}
	if n := commands(t, server, "evalsha"); n < 9 || n > 12 {
		t.Errorf("10,000 denied requests in ten seconds cost %d commands, want about 10", n)
	}
}

func commands(t *testing.T, server *redistest.Server, name string) (n int) {
	t.Helper()
	client := newClient(t, server.Addr)
	stats, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(stats) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// Two instances take the same two keys of a cluster, each in another order. If
// both are denied because of the other's hits, which are then given back, neither
// remembers that.
func TestOnAClusterATransientDenialIsNotRemembered(t *testing.T) {
	t.Parallel()
	cluster, _ := newCluster(t)
	limiters, _ := instances(t, 2, func() redisstore.Client {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}, perHour("a", 1), perHour("b", 1))
	both := 0
	for i := range 3000 {
		hits := []core.Hit{{Rule: "a", Key: fmt.Sprint(i)}, {Rule: "b", Key: fmt.Sprint(i)}}
		orders := [][]core.Hit{hits, {hits[1], hits[0]}}
		var allowed [2]bool
		var wg sync.WaitGroup
		for j := range 2 {
			wg.Go(func() {
				d, err := limiters[j].Take(t.Context(), 1, orders[j]...)
				if err != nil {
					t.Error(err)
				}
				allowed[j] = d.Allowed
			})
		}
		wg.Wait()
		if allowed[0] || allowed[1] {
			continue
		}
		// The hits have been given back by now.
		if d, err := limiters[both%2].Take(t.Context(), 1, orders[both%2]...); err != nil || !d.Allowed {
			t.Fatalf("round %d: %v, %v: a denial that did not last is remembered", i, d, err)
		}
		if both++; both == 10 {
			return
		}
	}
	if both == 0 {
		t.Error("the two never met: nothing was tested")
	}
}
