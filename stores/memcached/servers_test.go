package memcachedstore_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Of two servers one is gone, or does not answer: the keys of the other one are
// still decided by memcached, and those of the first in the process.
func TestOneServerOfTwoIsGone(t *testing.T) {
	t.Parallel()
	for name, takeDown := range map[string]func(*memcachedtest.Server, *faultproxy.Proxy){
		"killed": func(s *memcachedtest.Server, p *faultproxy.Proxy) { s.Stop(); p.CutAll() },
		"hung":   func(_ *memcachedtest.Server, p *faultproxy.Proxy) { p.Fail(faultproxy.Swallow, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			dead, alive := memcachedtest.Start(t), memcachedtest.Start(t)
			proxy := faultproxy.Start(t, dead.Addr)
			var mu sync.Mutex
			var changes []resilient.Change
			shared := newStore(t, []string{proxy.Addr, alive.Addr}, memcachedstore.Timeout(time.Second))
			store, err := resilient.New(shared, resilient.Config{
				Retry: time.Hour, Log: slog.New(slog.DiscardHandler), OnChange: func(c resilient.Change) {
					mu.Lock()
					defer mu.Unlock()
					changes = append(changes, c)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			l := newLimiter(t, store, "two", core.PerHour(1000))
			onDead := map[string]bool{}
			for i := range 60 {
				d, err := take(l, fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(dead.MustDo("get "+d.StoredKey()), "VALUE") {
					onDead[d.StoredKey()] = true
				}
			}
			takeDown(dead, proxy)
			for range 5 {
				for i := range 60 {
					key := fmt.Sprint(i)
					d, err := take(l, key)
					if err != nil || !d.Allowed {
						t.Fatalf("%v, %v", d, err)
					}
					if want := onDead[d.StoredKey()]; d.Degraded != want {
						t.Errorf("key %s: decided in the process: %v, want %v", key, d.Degraded, want)
					}
				}
			}
			if n := len(onDead); n == 0 || n == 60 {
				t.Fatalf("%d of 60 keys are on the dead server: nothing was tested", n)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(changes) != 1 || changes[0].Up || changes[0].Server != proxy.Addr {
				t.Errorf("changes %+v, want that %s is down", changes, proxy.Addr)
			}
		})
	}
}
