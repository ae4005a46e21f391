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
	t.Parallel()
	server := redistest.Start(t)
	inner := core.Traits{Exact: true, NeverOpens: true, Closes: true, KeepsDeadline: true, OneStep: true}
	for meanwhile, gone := range map[resilient.Mode]core.Traits{
		resilient.ModeInProcess: {NeverOpens: true}, resilient.ModeOpen: {}, resilient.ModeClosed: {NeverOpens: true, Closes: true},
	} {
		for _, keeps := range []bool{true, false} {
			name := meanwhile.String()
			if !keeps {
				name += " without a deadline"
			}
			t.Run(name, func(t *testing.T) {
				want := core.Traits{Exact: true, NeverOpens: gone.NeverOpens, Closes: gone.Closes, KeepsDeadline: true, FailsFast: true, OneStep: true}
				says := inner
				says.KeepsDeadline = keeps
				storetest.Traits(t, want, func(t testing.TB) storetest.Instances {
					proxy := faultproxy.Start(t, server.Addr)
					store := func() core.Store {
						c := redis.NewClient(&redis.Options{Addr: proxy.Addr})
						t.Cleanup(func() { _ = c.Close() })
						shared := hides{redisstore.New(c, redisstore.Timeout(2*time.Second), redisstore.AnotherInstance()), says}
						return core.Must(denycache.New(newStore(t, shared, resilient.Config{Meanwhile: meanwhile, Timeout: 2 * time.Second, Retry: time.Hour, Failures: 3}), denycache.Config{}))
					}
					return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
				})
			})
		}
	}
	opens := hides{core.Must(core.NewMemory(core.MemoryConfig{})), core.Traits{Exact: true}}
	for _, m := range []resilient.Mode{resilient.ModeInProcess, resilient.ModeOpen, resilient.ModeClosed} {
		if got := newStore(t, opens, resilient.Config{Meanwhile: m}).Traits(); got.NeverOpens || got.Closes {
			t.Errorf("%v, around a store that opens: %+v", m, got)
		}
	}
	counts := hides{opens.Store, core.Traits{NeverOpens: true}}
	if got := newStore(t, counts, resilient.Config{Meanwhile: resilient.ModeClosed}).Traits(); !got.NeverOpens || got.Closes || got.Exact {
		t.Errorf("around a store that counts and is not exact: %+v", got)
	}
}
