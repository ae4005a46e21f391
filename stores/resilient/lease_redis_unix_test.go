//go:build unix

package resilient_test

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// redisInstance is one of two processes that share a Redis server.
type redisInstance struct {
	*core.Limiter
	running, most atomic.Int64
}

// run acquires and releases slots until stop, and counts how many it has at a time.
func (i *redisInstance) run(t *testing.T, stop <-chan struct{}, all, most *atomic.Int64, allowed *atomic.Int64) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		d, release, err := i.Acquire(t.Context(), alice)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		if !d.Allowed {
			<-time.After(time.Millisecond)
			continue
		}
		allowed.Add(1)
		highest(&i.most, i.running.Add(1))
		highest(most, all.Add(1))
		<-time.After(3 * time.Millisecond)
		all.Add(-1)
		i.running.Add(-1)
		release()
	}
}

func highest(of *atomic.Int64, n int64) {
	for was := of.Load(); n > was && !of.CompareAndSwap(was, n); was = of.Load() {
	}
}

// Two instances with slots of a real server, which is killed, started again, stopped and continued
// under load. While it is away, each gives its part. Nobody gets an error, and no slot is lost.
func TestSlotsWhileRedisIsKilledAndStopped(t *testing.T) {
	t.Parallel()
	const quota, share, lease = 6, 3, 2 * time.Second
	server := redistest.Start(t)
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(server.PID(), s); err != nil {
			t.Error(err)
		}
	}
	var all [2]*redisInstance
	var stores [2]*resilient.Store
	for i := range all {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = client.Close() })
		shared := redisstore.New(client, redisstore.Timeout(time.Second), redisstore.AnotherInstance())
		stores[i] = newStore(t, shared, resilient.Config{Instances: 2, Retry: 100 * time.Millisecond, Failures: 3})
		all[i] = &redisInstance{Limiter: core.Must(core.New(core.Config{
			Name: "l", Store: stores[i],
			Rules: []core.Rule{rule("user", core.Limit{Quota: quota, Window: lease, Algorithm: core.Leases})},
		}))}
	}
	var running, most, allowed atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, i := range all {
		for range 8 {
			wg.Go(func() { i.run(t, stop, &running, &most, &allowed) })
		}
	}
	goesOn := func(when string) {
		t.Helper()
		at := allowed.Load()
		processtest.WaitFor(t, "slots "+when, func() bool { return allowed.Load() > at+50 })
	}
	bothAre := func(up bool) {
		t.Helper()
		processtest.WaitFor(t, "the circuits", func() bool { return stores[0].Up() == up && stores[1].Up() == up })
	}
	for name, away := range map[string]struct{ goes, comes func() }{
		"killed":  {server.Stop, server.Restart},
		"stopped": {func() { signal(syscall.SIGSTOP) }, func() { signal(syscall.SIGCONT) }},
	} {
		goesOn("before it is " + name)
		if n := most.Load(); n > quota {
			t.Errorf("%d at a time while the server answers", n)
		}
		away.goes()
		bothAre(false)
		processtest.WaitFor(t, "the parts", func() bool {
			return all[0].running.Load() <= share && all[1].running.Load() <= share
		})
		for _, i := range all {
			i.most.Store(0)
		}
		goesOn("while it is " + name)
		for _, i := range all {
			if n := i.most.Load(); n > share {
				t.Errorf("%d at a time in an instance while the server is %s", n, name)
			}
		}
		away.comes()
		bothAre(true)
		goesOn("after it was " + name)
		<-time.After(2 * lease) // replies that came late, leases that nobody has
		most.Store(0)
	}
	close(stop)
	wg.Wait()
	processtest.WaitFor(t, "all slots to be free", func() bool {
		d, err := all[0].Peek(t.Context(), 0, alice)
		return err == nil && d.Remaining == quota
	})
}
