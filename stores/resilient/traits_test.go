package resilient_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/stores/denycache"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// hides is a store around another that has other traits.
type hides struct {
	core.Store
	traits core.Traits
}

func (h hides) Traits() core.Traits { return h.traits }

// The traits are true of Redis behind a resilient store, whether Redis is asked
// by the caller's goroutine or, because it is said to keep no deadline, by another.
func TestTraits(t *testing.T) {
	server := redistest.Start(t)
	inner := core.Traits{Exact: true, WhenGone: core.Closes, KeepsDeadline: true, OneStep: true}
	for meanwhile, gone := range map[resilient.Meanwhile]core.WhenGone{
		resilient.InProcess: core.Counts, resilient.Open: core.Opens, resilient.Closed: core.Closes,
	} {
		for _, keeps := range []bool{true, false} {
			name := meanwhile.String()
			if !keeps {
				name += " without a deadline"
			}
			t.Run(name, func(t *testing.T) {
				want := core.Traits{Exact: true, WhenGone: gone, KeepsDeadline: true, FailsFast: true, OneStep: true}
				says := inner
				says.KeepsDeadline = keeps
				storetest.Traits(t, want, func(t testing.TB) storetest.Instances {
					proxy := faultproxy.Start(t, server.Addr)
					store := func() core.Store {
						c := redis.NewClient(&redis.Options{Addr: proxy.Addr})
						t.Cleanup(func() { _ = c.Close() })
						shared := hides{redisstore.New(c, redisstore.Timeout(time.Second), redisstore.AnotherInstance()), says}
						return core.Must(denycache.New(newStore(t, shared, resilient.Config{Meanwhile: meanwhile, Timeout: time.Second, Retry: time.Hour, Failures: 3}), denycache.Config{}))
					}
					return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
				})
			})
		}
	}
	opens := hides{core.Must(core.NewMemory(core.MemoryConfig{})), core.Traits{Exact: true}}
	for _, m := range []resilient.Meanwhile{resilient.InProcess, resilient.Open, resilient.Closed} {
		if got := newStore(t, opens, resilient.Config{Meanwhile: m}).Traits().WhenGone; got != core.Opens {
			t.Errorf("%v, around a store that opens: it %v", m, got)
		}
	}
	counts := hides{opens.Store, core.Traits{WhenGone: core.Counts}}
	if got := newStore(t, counts, resilient.Config{Meanwhile: resilient.Closed}).Traits(); got.WhenGone != core.Counts || got.Exact {
		t.Errorf("around a store that counts and is not exact: %+v", got)
	}
}
