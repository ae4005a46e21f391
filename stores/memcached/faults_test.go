package memcachedstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestLostReplies(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	for name, fault := range map[string]faultproxy.Fault{"cut": faultproxy.Cut, "swallowed": faultproxy.Swallow} {
		t.Run(name, func(t *testing.T) {
			proxy := faultproxy.Start(t, server.Addr)
			opts := []memcachedstore.Option{memcachedstore.Timeout(300 * time.Millisecond), memcachedstore.WithoutDenialCache()}
			l := newLimiter(t, newStore(t, []string{proxy.Addr}, opts...), name, core.PerHour(1000))
			direct := newLimiter(t, newStore(t, []string{server.Addr}, opts...), name, core.PerHour(1000))
			for skip := range 4 { // the reply to the first command, then to the second
				before := left(t, direct, "k")
				proxy.Fail(fault, 1)
				if _, err := take(l, "k"); err == nil {
					t.Error("no error")
				}
				proxy.Fail(faultproxy.None, 0)
				if got := left(t, direct, "k"); got != before && got != before-1 {
					t.Errorf("round %d: %d left, were %d", skip, got, before)
				}
				if d, err := take(l, "k"); err != nil || !d.Allowed {
					t.Errorf("afterwards: %v, %v", d, err)
				}
			}
		})
	}
}

func TestARestartForgets(t *testing.T) {
	server := memcachedtest.Start(t)
	l := newLimiter(t, newStore(t, []string{server.Addr}, memcachedstore.WithoutDenialCache()), "restart", core.PerHour(3))
	for range 4 {
		_, _ = take(l, "k")
	}
	server.Stop()
	if _, err := take(l, "k"); err == nil {
		t.Error("no error while the server is gone")
	}
	server.Restart()
	for i := range 5 {
		d, err := take(l, "k")
		if i == 0 && err != nil {
			continue // a connection from before
		}
		if err != nil || d.Remaining > 2 {
			t.Errorf("take %d: %v, %v", i, d, err)
		}
	}
}

func TestAServerWithoutRoom(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t, "-m", "4", "-I", "1m").Addr}, memcachedstore.Timeout(patience)), "room", core.PerHour(100))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 6000 {
				if d, err := take(l, fmt.Sprint(g, "-", i)); err != nil || !d.Allowed {
					t.Errorf("%v, %v", d, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	alone := statistic(t, server, "curr_connections")
	s := newStore(t, []string{server.Addr}, memcachedstore.Timeout(patience))
	l := newLimiter(t, s, "idle", core.PerHour(1_000_000))
	for range 5 {
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if _, err := take(l, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if n := statistic(t, server, "total_connections"); n > 300 {
		t.Errorf("%d connections were made for 5 × 200 takes", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	// The one that is left reads the statistic.
	processtest.WaitFor(t, "the connections to be closed", func() bool { return statistic(t, server, "curr_connections") <= alone })
}

func statistic(t *testing.T, server *memcachedtest.Server, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(server.All("stats")) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[1] == name {
			return atoi(fields[2])
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

func TestACanceledTakeIsCharged(t *testing.T) {
	l := newLimiter(t, newStore(t, []string{memcachedtest.Start(t).Addr}, memcachedstore.Timeout(patience)), "canceled", core.PerHour(100))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 {
		_, _ = l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"})
	}
	processtest.WaitFor(t, "20 takes of 100", func() bool { return left(t, l, "k") == 80 })
}

// Nobody listens at one of two addresses. The keys of the other one are decided, and a reset of all
// keys resets them.
func TestAServerThatIsGoneChargesNothing(t *testing.T) {
	listener := core.Must(net.Listen("tcp", "127.0.0.1:0"))
	_ = listener.Close()
	l := newLimiter(t, newStore(t, []string{listener.Addr().String(), memcachedtest.Start(t).Addr}), "gone", core.PerHour(10))
	var hits, alive []core.Hit
	for i := range 20 {
		hits = append(hits, core.Hit{Rule: "r", Key: fmt.Sprint(i)})
		if _, err := l.Take(t.Context(), 1, hits[i]); err == nil {
			alive = append(alive, hits[i])
		} else if !errors.Is(err, core.ErrNotCharged) {
			t.Errorf("error %v, want one that says that nothing was charged", err)
		}
	}
	if err := l.Reset(t.Context(), hits...); err == nil || len(alive) == 0 || len(alive) == len(hits) {
		t.Errorf("a reset of %d keys, %d of a server that answers: %v", len(hits), len(alive), err)
	}
	for _, hit := range alive {
		if n := left(t, l, hit.Key); n != 10 {
			t.Errorf("key %s: %d left of 10 after a reset", hit.Key, n)
		}
	}
}

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
			store := core.Must(resilient.New(shared, resilient.Config{
				Retry: time.Hour, Log: slog.New(slog.DiscardHandler), OnChange: func(c resilient.Change) {
					mu.Lock()
					defer mu.Unlock()
					changes = append(changes, c)
				},
			}))
			t.Cleanup(func() { _ = store.Close() })
			l := newLimiter(t, store, "two", core.PerHour(1000))
			onDead := map[string]bool{}
			for i := range 60 {
				d := core.Must(take(l, fmt.Sprint(i)))
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
