package memcachedstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
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

func TestAnotherListOfServers(t *testing.T) {
	t.Parallel()
	addrs := []string{memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr}
	two := newLimiter(t, newStore(t, addrs[:2]), "servers", core.PerHour(3))
	three := newLimiter(t, newStore(t, addrs), "servers", core.PerHour(3))
	moved := 0
	for key := range 60 {
		admitted := 0
		for _, l := range []*core.Limiter{two, three} {
			for range 5 {
				d, err := take(l, fmt.Sprint(key))
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed {
					admitted++
				}
			}
		}
		switch admitted {
		case 3:
		case 6:
			moved++
		default:
			t.Errorf("key %d: %d admitted", key, admitted)
		}
	}
	if moved == 0 || moved == 60 {
		t.Errorf("%d of 60 keys have moved", moved)
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
	for end := time.Now().Add(patience); statistic(t, server, "curr_connections") > alone; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a closed store keeps connections: %d, want %d", statistic(t, server, "curr_connections"), alone)
		}
	}
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
	for end := time.Now().Add(patience); left(t, l, "k") != 80; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d left after 20 takes of 100", left(t, l, "k"))
		}
	}
}
