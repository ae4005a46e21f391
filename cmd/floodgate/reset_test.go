package main

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// Two services have just denied a key; a second after the command has reset it,
// both let it in.
func TestAResetIsNoticedByTheServices(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies:\n  - {name: api, key: 'query[\"k\"]', limits: 2/h}\n")
	clock := storetest.NewClock(time.Now())
	var services []*core.Limiter
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		defer client.Close() //nolint:errcheck // the test is over
		set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second), redisstore.Clock(clock.Now), redisstore.AnotherInstance())))
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close() //nolint:errcheck // the test is over
		services = append(services, set.Limiter())
	}
	ann := core.Hit{Rule: "api", Key: "ann"}
	take := func(l *core.Limiter) core.Decision {
		t.Helper()
		d, err := l.Take(t.Context(), 1, ann)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for range 4 {
		for _, s := range services {
			take(s)
		}
	}
	for i, s := range services {
		if take(s).Allowed {
			t.Fatalf("service %d: not over the limit", i)
		}
	}
	expect(t, 0, "", "reset", path, "--store", "redis://"+server.Addr+"/0", "--policy", "api", "--key", "ann")
	clock.Advance(time.Second)
	for i, s := range services {
		if d := take(s); !d.Allowed {
			t.Errorf("service %d: %v", i, d)
		}
	}
}
