package resilient_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// servers start a server and return how a program connects to it: through a proxy
// if it is to lose the connection.
var servers = map[string]func(t *testing.T, clock func() time.Time) (addr string, connect func(addr string) core.Store){
	"Redis": func(t *testing.T, clock func() time.Time) (string, func(string) core.Store) {
		return redistest.Start(t).Addr, func(addr string) core.Store {
			client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client, redisstore.AnotherInstance(), redisstore.Clock(clock), redisstore.Timeout(patience))
		}
	},
	"memcached": func(t *testing.T, clock func() time.Time) (string, func(string) core.Store) {
		return memcachedtest.Start(t).Addr, func(addr string) core.Store {
			store := core.Must(memcachedstore.New([]string{addr}, memcachedstore.AnotherInstance(), memcachedstore.Clock(clock), memcachedstore.Timeout(patience)))
			t.Cleanup(func() { _ = store.Close() })
			return store
		}
	},
}

// Three instances share a server. One of them loses it, admits hits meanwhile, and
// finds it again. Then an operator resets some keys by an instance that has always
// reached the server. The keys come to the instance of the outage only after that.
func TestAnOutageThenAResetByAnotherInstance(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
			addr, connect := start(t, clock.Now)
			rules := []core.Rule{rule("user", fixed(5, time.Hour), core.Limit{Quota: 40, Window: 24 * time.Hour}), rule("addr", core.PerHour(8))}
			limiter := func(store core.Store) instance {
				return instance{core.Must(core.New(core.Config{Name: "l", Store: store, Rules: rules})), t, nil}
			}
			proxy := faultproxy.Start(t, addr)
			cut := newStore(t, connect(proxy.Addr), resilient.Config{Failures: 1, Retry: 20 * time.Millisecond, Clock: clock.Now})
			self, first, second := limiter(cut), limiter(connect(addr)), limiter(connect(addr))
			user := func(i int) core.Hit { return core.Hit{Rule: "user", Key: fmt.Sprint("user", i)} }
			client := core.Hit{Rule: "addr", Key: "192.0.2.1"}
			const users = 50

			self.admitted(1, user(0)) // before the outage
			proxy.Fail(faultproxy.Cut, -1)
			for i := range users {
				if n := self.admitted(7, user(i), client); i == 0 && n != 4 || i == 1 && n != 4 || i > 1 && n != 0 {
					t.Errorf("user %d: %d admitted in the outage by the address's quota of 8, after one hit before", i, n)
				}
			}
			for i := range users {
				self.admitted(7, user(i))
			}
			clock.Advance(time.Minute)
			proxy.Fail(faultproxy.None, 0)
			// All keys are charged with no request to this instance.
			for i := range users {
				processtest.WaitFor(t, "the hits of the outage to be charged", func() bool {
					d, err := second.Peek(context.Background(), 1, user(i))
					return err == nil && d.Remaining == 0
				})
			}
			processtest.WaitFor(t, "the address to be charged", func() bool {
				d, err := second.Peek(context.Background(), 1, client)
				return err == nil && d.Remaining == 0
			})
			if n := first.admitted(1, user(1)) + self.admitted(1, user(1)); n != 0 {
				t.Errorf("%d admitted after the outage, want 0", n)
			}
			for i := range users / 2 {
				first.reset(user(i))
			}
			clock.Advance(time.Second)
			for i := range users {
				want := 0
				if i < users/2 {
					want = 5
				}
				if n := self.admitted(2, user(i)) + second.admitted(4, user(i)); n != want {
					t.Errorf("user %d: %d admitted after the resets, want %d", i, n, want)
				}
			}
		})
	}
}

// Of two memcached servers one is lost to an instance for a while: its keys are
// charged when it is back, and a Reset after that counts.
func TestAnOutageOfOneOfTwoServersThenAReset(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	lost, kept := memcachedtest.Start(t), memcachedtest.Start(t)
	proxy := faultproxy.Start(t, lost.Addr)
	connect := func(opts ...memcachedstore.Option) core.Store {
		// Both instances name the servers alike, so that a key is on one of them.
		opts = append(opts, memcachedstore.AnotherInstance(), memcachedstore.Clock(clock.Now), memcachedstore.Timeout(patience))
		store := core.Must(memcachedstore.New([]string{proxy.Addr, kept.Addr}, opts...))
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	up := make(chan resilient.Change, 100)
	cut := newStore(t, connect(), resilient.Config{Failures: 1, Retry: 20 * time.Millisecond, Clock: clock.Now, OnChange: func(c resilient.Change) { up <- c }})
	limiter := func(store core.Store) instance {
		return instance{core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{rule("user", fixed(5, time.Hour))}})), t, nil}
	}
	self := limiter(cut)
	user := func(i int) core.Hit { return core.Hit{Rule: "user", Key: fmt.Sprint("user", i)} }
	proxy.Fail(faultproxy.Cut, -1)
	for i := range 40 {
		if n := self.admitted(7, user(i)); n != 5 {
			t.Errorf("user %d: %d admitted with a server lost, want 5", i, n)
		}
	}
	if c := <-up; c.Up || c.Server != proxy.Addr {
		t.Errorf("reported %+v, want that the server is lost", c)
	}
	proxy.Fail(faultproxy.None, 0)
	if c := <-up; !c.Up || c.Server != proxy.Addr {
		t.Errorf("reported %+v, want that the server is back", c)
	}
	other := limiter(connect())
	for i := range 40 {
		processtest.WaitFor(t, "the hits of the outage to be charged", func() bool {
			d, err := other.Peek(context.Background(), 1, user(i))
			return err == nil && d.Remaining == 0
		})
		other.reset(user(i))
	}
	clock.Advance(time.Second)
	for i := range 40 {
		if n := self.admitted(2, user(i)) + other.admitted(4, user(i)); n != 5 {
			t.Errorf("user %d: %d admitted after the reset, want 5", i, n)
		}
	}
}

// A Reset whose context ends before the hits of the key are charged clears them
// too.
func TestAResetThatDoesNotWaitForACharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Timeout: time.Hour, Failures: 100}, rule("user", fixed(5, time.Hour)))
		a, b := all[0], all[1]
		b.link.fail(errRefused)
		if n := b.admitted(9, alice); n != 5 {
			t.Fatalf("%d admitted in the outage, want 5", n)
		}
		b.link.fail(nil)
		hold := make(chan struct{})
		b.link.between.Store(func() { <-hold })
		time.Sleep(2 * time.Second) // the counts are known, and the charge is not sent
		b.link.between.Store(func() {})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = b.Reset(ctx, alice)
		synctest.Wait()
		close(hold)
		time.Sleep(2 * time.Second)
		if n := a.admitted(9, alice); n != 5 {
			t.Errorf("%d admitted after a reset, want 5", n)
		}
	})
}
