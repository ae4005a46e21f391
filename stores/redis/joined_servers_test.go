//go:build unix

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// The server has forgotten the script.
func TestAForgottenScriptIsSentAgainForAll(t *testing.T) {
	c := newCompany(t, patience)
	c.travel(func() { c.server.MustDo("SCRIPT", "FLUSH") })
	c.check(fine)
	if n := commands(t, c.server, "eval"); n != 1 {
		t.Errorf("%d EVALs, want 1", n)
	}
}

// The server has become a replica. It becomes a primary again, or not.
func TestAReplicaRefusesAll(t *testing.T) {
	c := newCompany(t, 2*time.Second)
	c.travel(func() { c.server.MustDo("REPLICAOF", "127.0.0.1", "1") })
	c.wg.Wait()
	c.server.MustDo("REPLICAOF", "NO", "ONE")
	c.check(of(redisstore.ClassNotReady, false))

	c = newCompany(t, patience)
	c.travel(func() {
		c.server.MustDo("REPLICAOF", "127.0.0.1", "1")
		c.wg.Go(func() {
			processtest.WaitFor(t, "a refusal", func() bool { return commands(t, c.server, "evalsha") > 0 })
			c.server.MustDo("REPLICAOF", "NO", "ONE")
		})
	})
	c.check(fine)
}

// The server is killed, at some point of the exchange.
func TestAServerThatIsKilledChargesNobodyTwice(t *testing.T) {
	c := newCompany(t, patience)
	c.travel(func() { c.server.Stop() })
	c.wg.Wait()
	for i, err := range c.errs {
		if !of(redisstore.ClassUnreachable, true)(err) && !of(redisstore.ClassUnreachable, false)(err) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
}

// The server has no memory left, or the user may not write: those who would be charged fail, and
// those who are denied are told so.
func TestADeniedWriteFailsOnlyWhoWouldBeCharged(t *testing.T) {
	for class, command := range map[redisstore.Class][]string{
		redisstore.ClassFull:      {"CONFIG", "SET", "maxmemory", "1"},
		redisstore.ClassForbidden: {"ACL", "SETUSER", "default", "-set"},
	} {
		c := newCompany(t, patience, "--maxmemory-policy", "noeviction")
		for range 10 {
			take(t, c.other, "shared")
		}
		c.before = 10
		c.travel(func() { c.server.MustDo(command...) })
		c.check(func(err error) bool { return err == nil || of(class, false)(err) })
		for i, err := range c.errs {
			if shared := c.key(i) == "shared"; shared != (err == nil) || shared && c.batches[i].Allowed {
				t.Errorf("caller %d, with a key of its own %v: error %v, allowed %v", i, !shared, err, c.batches[i].Allowed)
			}
		}
	}
}

// The user has no permission for the key of one of the callers.
func TestAForbiddenKeyFailsItsCallerOnly(t *testing.T) {
	c := newCompany(t, patience)
	forbidden := stored(t, "own6")
	c.travel(func() {
		permitted := []string{"ACL", "SETUSER", "default", "resetkeys"}
		for i := range travellers {
			if name := stored(t, c.key(i)); name != forbidden {
				permitted = append(permitted, "~"+name)
			}
		}
		c.server.MustDo(permitted...)
		c.wg.Go(func() {
			processtest.WaitFor(t, "the others", func() bool { return commands(t, c.server, "evalsha") == travellers-1 })
			c.server.MustDo("ACL", "SETUSER", "default", "allkeys")
		})
	})
	c.check(func(err error) bool { return err == nil || of(redisstore.ClassForbidden, false)(err) })
	for i, err := range c.errs {
		if (c.key(i) == "own6") != (err != nil) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
}

// A value that cannot be read, or is of another type, concerns its caller only.
func TestAnUnreadableValueDeniesItsCallerOnly(t *testing.T) {
	c := newCompany(t, patience)
	c.store = redisstore.OneAtATime(redisstore.New(c.client, redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()))
	rules := slices.Clone(hourly)
	rules[0].DenyUnreadable = true
	c.bound = core.Must(c.store.Open(bindName(t), rules))
	c.travel(func() {
		c.server.MustDo("SET", stored(t, "own2"), "nonsense")
		c.server.MustDo("RPUSH", stored(t, "own4"), "a list")
	})
	c.wg.Wait()
	for i, err := range c.errs {
		if err != nil {
			t.Errorf("caller %d: error %v", i, err)
		} else if k := c.key(i); k != "shared" && c.batches[i].Allowed == (k == "own2" || k == "own4") {
			t.Errorf("caller %d: allowed %v", i, c.batches[i].Allowed)
		}
	}
}

// Refunds and resets travel with takes, and each does its own.
func TestRefundsAndResetsTravelToo(t *testing.T) {
	c := newCompany(t, patience)
	refunds, resets := one("refunded", 1, 1), one("reset", 1, 1)
	for range 4 {
		for _, b := range []*core.Batch{refunds, resets} {
			if err := storetest.Do(t.Context(), c.bound, core.OpTake, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.travel(nil)
	c.check(fine)
	var errs [5]error
	c.gather(len(errs), func(i int) {
		switch i {
		case 0:
			errs[i] = storetest.Do(context.Background(), c.bound, core.OpReset, resets)
		case 1:
			errs[i] = storetest.Do(context.Background(), c.bound, core.OpTake, one("taken", 1, 1))
		default:
			own := *refunds
			errs[i] = storetest.Do(context.Background(), c.bound, core.OpRefund, &own)
		}
	}, nil)
	c.wg.Wait()
	if n := commands(t, c.server, "evalsha"); n != 1 {
		t.Errorf("%d commands, want 1", n)
	}
	for i, err := range errs {
		if err != nil {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	for key, want := range map[string]int64{"reset": 0, "taken": 1, "refunded": 1} {
		if got := charged(t, c.other, key); got != want {
			t.Errorf("%s: %d charged, want %d", key, got, want)
		}
	}
}

// One key takes the server long. The callers of ten thousand others are told in
// time, none of them fails, and neither does the one with the slow key.
func TestASlowKeyStarvesNobody(t *testing.T) {
	server := redistest.Start(t)
	const most = 10_000 // the largest quota of a sliding log
	rules := []core.StoreRule{
		{Name: "r", Limits: []core.Limit{core.PerHour(10)}},
		{Name: "slow", Limits: []core.Limit{{Quota: most, Window: time.Hour, Algorithm: core.SlidingLog}}},
	}
	b := bind(t, newClient(t, server.Addr), rules, redisstore.Timeout(patience))
	slow := func(cost int64) *core.Batch {
		batch := one("slow", cost, 1)
		batch.Items[0].Rule = 1
		return batch
	}
	if err := storetest.Do(t.Context(), b, core.OpTake, slow(most/2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	slowly := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			batch := slow(1)
			if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil || batch.Allowed != (slowly < most/2) {
				t.Errorf("the slow key: allowed %v, error %v", batch.Allowed, err)
				return
			}
			slowly++
		}
	})
	var others sync.WaitGroup
	for i := range 100 {
		others.Go(func() {
			for j := range 100 {
				batch := one(fmt.Sprint(i, "-", j), 1, 1)
				if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Errorf("key %d-%d: allowed %v, error %v", i, j, batch.Allowed, err)
				}
			}
		})
	}
	others.Wait()
	cancel()
	wg.Wait()
	if slowly < 20 {
		t.Errorf("%d decisions on the slow key beside 10,000 on others", slowly)
	}
}

// The primary dies while many decide. Each is told something, and in time; what the
// new primary has counted was admitted, or may have been, and what was replicated is there.
func TestAFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: f.Name, SentinelAddrs: []string{f.Sentinel.Addr}, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	b := bind(t, client, daily, redisstore.Timeout(300*time.Millisecond))
	processtest.WaitFor(t, "the primary", func() bool { return storetest.Do(t.Context(), b, core.OpTake, one("before", 4, 1)) == nil })
	processtest.WaitFor(t, "the replica to have it", f.Replicated)
	var mu sync.Mutex
	admitted, unknown, after := int64(0), int64(0), 0
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	failed := false
	for range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				err := storetest.Do(context.Background(), b, core.OpTake, one("k", 1, 1))
				var e *redisstore.Error
				mu.Lock()
				switch {
				case err == nil:
					admitted++
					if failed {
						after++
					}
				case !errors.As(err, &e):
					t.Error(err)
				case e.Unknown:
					unknown++
				default:
					failed = failed || !strings.Contains(err.Error(), "READONLY")
				}
				mu.Unlock()
			}
		})
	}
	processtest.WaitFor(t, "load", func() bool { mu.Lock(); defer mu.Unlock(); return admitted > 1000 })
	f.Primary.Stop()
	processtest.WaitFor(t, "takes on the new primary", func() bool { mu.Lock(); defer mu.Unlock(); return after > 1000 })
	cancel()
	wg.Wait()
	patient := bind(t, client, daily, redisstore.Timeout(patience))
	if got := counted(t, patient, "before"); got < 4 {
		t.Errorf("%d of 4 hits that were replicated", got)
	}
	if got := counted(t, patient, "k"); got > admitted+unknown || got < int64(after) {
		t.Errorf("%d charged; %d admitted, %d of them by the new primary; of %d nobody knows", got, admitted, after, unknown)
	}
}

// The server stops for a while, before it has seen the exchange.
func TestAServerThatStopsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	c := newCompany(t, timeout)
	signal := func(s syscall.Signal) {
		if err := syscall.Kill(c.server.PID(), s); err != nil {
			t.Error(err)
		}
	}
	c.travel(func() { signal(syscall.SIGSTOP) })
	c.wg.Wait()
	for i, err := range c.errs {
		if !of(redisstore.ClassTimedOut, true)(err) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
	signal(syscall.SIGCONT)
	c.check(of(redisstore.ClassTimedOut, true))
	processtest.WaitFor(t, "the next decision", func() bool { return storetest.Do(t.Context(), c.bound, core.OpTake, one("next", 1, 1)) == nil })
}
