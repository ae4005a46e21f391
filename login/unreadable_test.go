package login_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A damaged counter denies its key, whatever the store itself does with damaged counters.
func TestDamagedCountersDenyAttempts(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newSiteAt(t, clock, login.Config{
		Store:      redisstore.New(client, redisstore.Clock(clock.Now), redisstore.Timeout(20*time.Second), redisstore.WithoutDenialCache()),
		Resilience: resilient.Config{Timeout: 20 * time.Second},
	})
	s.want(many(8, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:3]")
	damaged := 0
	for _, name := range client.Keys(t.Context(), "fg1:login:*").Val() {
		if !strings.HasPrefix(name, "fg1:login-memory:") {
			client.Set(t.Context(), name, "nonsense", redis.KeepTTL)
			damaged++
		}
	}
	if damaged < 3 {
		t.Fatalf("%d counters", damaged)
	}
	s.want(many(20, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[429:20]")
	clock.Advance(time.Hour + time.Second) // the guard works on
	s.want(many(1, func(int) int { return s.wrong("203.0.113.2", "bob") }), "map[401:1]")
}
