package main

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// inspect and top say how many requests of a key are in flight, and reset ends their slots.
func TestWhatIsInFlight(t *testing.T) {
	server := redistest.Start(t)
	url := "redis://" + server.Addr
	path := file(t, "limits.yaml", `
policies:
  - {name: api, key: 'query["k"]', limits: [{in-flight: 5}]}
`)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // the test is over
	set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second))))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	for range 2 {
		d, release, err := set.Limiter().Acquire(t.Context(), core.Hit{Rule: "api", Key: "ann"})
		if err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		defer release()
	}
	says := func(want string, args ...string) {
		t.Helper()
		out, _ := expect(t, exitFine, "", append([]string{args[0], path, "--store", url}, args[1:]...)...)
		if got := strings.Join(strings.Fields(out), " "); !strings.Contains(got, want) {
			t.Errorf("%v says %q, want %q", args, got, want)
		}
	}
	says("api 5 in flight 2 3 when they end", "inspect", "--policy", "api", "--key", "ann")
	says("api 5 in flight 0 5 0s", "inspect", "--policy", "api", "--key", "bob")
	says("api 5 in flight 2 3 when they end", "top", "--key", "ann")
	says("reset: key ann", "reset", "--policy", "api", "--key", "ann")
	says("api 5 in flight 0 5 0s", "inspect", "--policy", "api", "--key", "ann")
}
