package resilient_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/stores/denycache"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func newRedis(t testing.TB, o redis.Options, timeout time.Duration) core.Store {
	o.MaxRetries, o.DialerRetries = -1, 1
	client := redis.NewClient(&o)
	t.Cleanup(func() { _ = client.Close() })
	return redisstore.New(client, redisstore.Timeout(timeout), redisstore.AnotherInstance())
}

// The guarantees are true of a resilient store around Redis, also if Redis is said to keep no deadline.
func TestGuaranteesAroundRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	inner := newRedis(t, redis.Options{Addr: server.Addr}, time.Second).Guarantees()
	for mode, onFailure := range map[resilient.Mode]core.OnFailure{
		resilient.Local: core.FailLocal, resilient.FailOpen: core.FailOpen, resilient.FailClosed: core.FailClosed,
	} {
		for _, keeps := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, keeps a deadline %v", mode, keeps), func(t *testing.T) {
				t.Parallel()
				says, want := inner, inner
				says.KeepsDeadline = keeps
				want.OnFailure, want.FailsFast = onFailure, true
				storetest.Guarantees(t, want, func(t testing.TB) storetest.Instances {
					proxy := faultproxy.Start(t, server.Addr)
					store := func() core.Store {
						shared := &link{Store: newRedis(t, redis.Options{Addr: proxy.Addr}, 4*time.Second), guarantees: &says}
						return core.Must(denycache.New(newStore(t, shared, resilient.Config{OnFailure: mode, Timeout: 4 * time.Second, Retry: time.Hour, Failures: 3}), denycache.Config{}))
					}
					return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
				})
			})
		}
	}
}

// A Redis that is killed comes back empty. The process has counted the hits of before, and the
// store decides alone again.
func TestARedisThatIsKilledAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var ups atomic.Int64
	store := newStore(t, newRedis(t, redis.Options{Addr: server.Addr, DialTimeout: time.Second}, patience), resilient.Config{
		Failures: 1, Retry: 5 * time.Millisecond, OnChange: func(c resilient.Change) {
			if c.Up {
				ups.Add(1)
			}
		},
	})
	l := newLimiter(t, store, core.PerHour(10))
	if n := allowed(t, l, 6, alice); n != 6 {
		t.Fatalf("%d allowed by Redis", n)
	}
	server.Stop()
	if n := allowed(t, l, 20, alice); n != 4 || store.Up() {
		t.Errorf("%d allowed without Redis, want the 4 that are left; up %v", n, store.Up())
	}
	server.Restart()
	processtest.WaitFor(t, "Redis to be asked again", func() bool { return !degraded(t, l, user("somebody")) })
	if n := allowed(t, l, 20, alice); n != 10 || ups.Load() != 1 {
		t.Errorf("%d allowed by Redis, which is empty, want 10; reported %d times", n, ups.Load())
	}
}
