package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// lease is short, because the server measures it, and long enough for a busy machine to renew it.
const lease = 2 * time.Second

// slots is how many there are.
const slots = 3

const user = "ann"

// setup is two programs that share a server: one behind the proxy, and one that the network does not
// trouble.
type setup struct {
	*testing.T
	proxy            *faultproxy.Proxy
	server           *redis.Client
	name             string // of the limiters
	troubled, direct *inflight.Limiter
}

// What faults of the network do to slots.
func TestFaultsBetweenAcquireRenewAndRelease(t *testing.T) {
	addr := redistest.Start(t).Addr
	for name, test := range map[string]func(s *setup){
		"the reply to an acquire is lost":  (*setup).acquireIsLost,
		"the replies to renewals are lost": (*setup).renewalsAreLost,
		"closed while a renewal hangs":     (*setup).closedWhileRenewing,
		"all of that beside many requests": (*setup).soak,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &setup{T: t, proxy: faultproxy.Start(t, addr), server: newClient(t, addr), name: strings.ReplaceAll(name, " ", "-")}
			s.troubled, s.direct = newSlots(t, newClient(t, s.proxy.Addr), s.name), newSlots(t, s.server, s.name)
			test(s)
		})
	}
}

func newSlots(t *testing.T, client redisstore.Client, name string) *inflight.Limiter {
	l, err := inflight.New(inflight.Config{
		Name: name, Max: slots, Lease: lease, Log: slog.New(slog.DiscardHandler),
		Store: redisstore.New(client, redisstore.Timeout(200*time.Millisecond), redisstore.AnotherInstance()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// acquire takes a slot. A decision that a busy machine has made impossible in time is made again.
func (s *setup) acquire(l *inflight.Limiter) (release func(), ok bool) {
	s.Helper()
	for range 20 {
		release, ok, err := l.Acquire(context.Background(), user)
		if err == nil {
			return release, ok
		}
	}
	s.Fatal("the store does not answer")
	return nil, false
}

// left returns how many slots are free by the server's clock.
func (s *setup) left() int64 {
	keys, err := s.server.Keys(context.Background(), "fgs1:{"+s.name+"}:*").Result()
	left := int64(slots)
	for _, key := range keys {
		now, err := s.server.Time(context.Background()).Result()
		if err != nil {
			return -1
		}
		held, err := s.server.ZCount(context.Background(), key, fmt.Sprint("(", now.UnixMilli()), "+inf").Result()
		if err != nil {
			return -1
		}
		left -= held
	}
	if err != nil {
		return -1
	}
	return left
}

// allFree waits until no slot is held.
func (s *setup) allFree(when string) {
	s.Helper()
	processtest.WaitFor(s, when, func() bool { return s.left() == slots })
}

// heal ends all faults. Connections that have lost a reply are cut.
func (s *setup) heal() {
	s.proxy.Fail(faultproxy.None, 0)
	s.proxy.Release()
	s.proxy.CutAll()
}

// eachFault calls f for each fault that loses replies.
func eachFault(f func(faultproxy.Fault)) {
	for _, fault := range []faultproxy.Fault{faultproxy.Cut, faultproxy.Swallow} {
		f(fault)
	}
}

// The limiter releases in the background what it may have got. If that does not succeed either, the slot is free
// after a lease.
func (s *setup) acquireIsLost() {
	eachFault(func(fault faultproxy.Fault) {
		for _, heals := range []bool{true, false} {
			s.proxy.Fail(fault, -1)
			release, ok, err := s.troubled.Acquire(context.Background(), user)
			if err == nil || ok {
				s.Fatalf("no error: %v", ok)
			}
			release()
			if heals {
				s.heal()
			}
			s.allFree("the slot to be free")
			s.heal()
		}
	})
}

// A slot whose renewals are troubled, for less than a lease at a time, is held all the same.
func (s *setup) renewalsAreLost() {
	release, _ := s.acquire(s.troubled)
	for i := range 10 {
		s.proxy.Fail([]faultproxy.Fault{faultproxy.Cut, faultproxy.Swallow}[i%2], 1)
		<-time.After(lease / 3)
		if n := s.left(); n == slots {
			s.Error("the slot is free while it is held")
		}
	}
	s.heal()
	release()
	s.allFree("the slot to be free")
}

// Nobody waits for a renewal that hangs, and nothing goes on when the limiter is closed: TestMain looks for
// goroutines. The slot is free after a lease.
func (s *setup) closedWhileRenewing() {
	release, _ := s.acquire(s.troubled)
	s.proxy.Stall()
	<-time.After(lease/3 + lease/20) // a renewal is under way
	if err := s.troubled.Close(); err != nil {
		s.Error(err)
	}
	release()
	s.allFree("the slot to be free")
	s.proxy.CutAll()
}

// Two programs take slots all the time. Never more than Max are held, whatever happens to the
// commands of one.
func (s *setup) soak() {
	var running, allowed atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 8 {
		l := []*inflight.Limiter{s.troubled, s.direct}[i%2]
		wg.Go(func() {
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				case <-time.After(time.Millisecond):
				}
				release, ok, err := l.Acquire(context.Background(), user)
				if err != nil || !ok {
					continue
				}
				allowed.Add(1)
				if n := running.Add(1); n > slots {
					s.Errorf("%d at a time", n)
				}
				<-time.After(5 * time.Millisecond)
				running.Add(-1)
				release()
			}
		})
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
	for end := time.Now().Add(2 * lease); time.Now().Before(end); <-time.After(time.Duration(r.IntN(50)) * time.Millisecond) {
		switch r.IntN(6) {
		case 0:
			s.proxy.Fail(faultproxy.Cut, 1+r.IntN(3))
		case 1:
			s.proxy.Fail(faultproxy.Swallow, 1+r.IntN(3))
		case 2:
			s.proxy.Delay(time.Duration(r.IntN(300)) * time.Millisecond)
		case 3:
			s.proxy.Stall()
		case 4:
			s.proxy.Hold()
		case 5:
			s.proxy.Delay(0)
			s.heal()
		}
	}
	s.proxy.Delay(0)
	s.heal()
	close(stop)
	wg.Wait()
	if allowed.Load() == 0 {
		s.Error("nobody has got a slot")
	}
	s.allFree("all slots to be free")
	if s.Failed() {
		s.Logf("seed %d", seed)
	}
}

// The slots of a limiter are in one hash slot, so that one command renews all of them: on a cluster,
// on a client that shards by key, and on a server whose scripts have been flushed.
func TestSlotsOnSeveralServers(t *testing.T) {
	t.Parallel()
	_, cluster := newCluster(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "z": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redisstore.Client{"Cluster": cluster, "Ring": ring, "Client": newClient(t, redistest.Start(t).Addr)} {
		t.Run(name, func(t *testing.T) {
			s := redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance())
			var all []inflight.Slot
			for i := range uint64(40) {
				slot := inflight.Slot{Key: fmt.Sprint(i / 2), ID: i + 1}
				for range 2 { // the second time, the slot is there already
					if held, ok, err := s.AcquireSlot(t.Context(), "l", slot, 2, time.Minute); err != nil || !ok || held != int64(i%2+1) {
						t.Fatalf("slot %d: %d, %t, %v", i, held, ok, err)
					}
				}
				all = append(all, slot)
			}
			if c, ok := client.(*redis.Client); ok {
				c.ScriptFlush(t.Context())
			}
			full := func() bool {
				_, ok, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "7", ID: 100}, 2, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				return !ok
			}
			if err := s.RenewSlots(t.Context(), "l", all, time.Minute); err != nil || !full() {
				t.Errorf("after a renewal: %v", err)
			}
			if _, ok, err := s.AcquireSlot(t.Context(), "another", inflight.Slot{Key: "7", ID: 100}, 1, time.Minute); !ok || err != nil {
				t.Errorf("of another limiter: %t, %v", ok, err)
			}
			for range 2 {
				if err := s.ReleaseSlots(t.Context(), "l", all); err != nil {
					t.Error(err)
				}
			}
			if full() {
				t.Error("full after the release")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := s.ReleaseSlots(t.Context(), "l", all); !errors.Is(err, core.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		})
	}
}

// A process that dies holds its slots for a lease, also if others hold slots of the key. A key without
// slots leaves nothing in Redis.
func TestSlotsEndWithTheirLease(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	s := redisstore.New(client, redisstore.Timeout(patience))
	began := time.Now()
	living := inflight.Slot{Key: "k", ID: 3}
	for slot, lease := range map[inflight.Slot]time.Duration{{Key: "k", ID: 1}: time.Second, living: time.Minute} {
		if _, ok, err := s.AcquireSlot(t.Context(), "l", slot, 2, lease); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	processtest.WaitFor(t, "the slot to be free", func() bool {
		_, ok, err := s.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "k", ID: 2}, 2, time.Second)
		return ok && err == nil
	})
	if took := time.Since(began); took < 990*time.Millisecond {
		t.Errorf("it is free after %v", took)
	}
	if err := s.ReleaseSlots(t.Context(), "l", []inflight.Slot{living, {Key: "k", ID: 2}}); err != nil {
		t.Error(err)
	}
	processtest.WaitFor(t, "the key to be gone", func() bool { return client.DBSize(t.Context()).Val() == 0 })
}
