package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// daily has a quota that no test charges.
var daily = []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 1_000_000, Window: 24 * time.Hour}}}}

// counted returns how many hits of daily are gone.
func counted(t testing.TB, b core.Counters, key string) int64 {
	t.Helper()
	batch := one(key, 0, 1)
	if err := storetest.Do(context.Background(), b, core.OpPeek, batch); err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return 1_000_000 - batch.Items[0].Results[0].Remaining
}

// unknown tells whether an error says that something may have been charged.
func unknown(err error) bool {
	var e *redisstore.Error
	return errors.As(err, &e) && e.Unknown && !errors.Is(err, core.ErrNotCharged)
}

// The reply to a charge is lost, and the client would send it again.
func TestAChargeWhoseReplyIsLostIsCountedOnce(t *testing.T) {
	clients(t, func(t *testing.T, client redisstore.Client, proxy *faultproxy.Proxy, server *redistest.Server) {
		b := bind(t, client, daily, redisstore.Timeout(patience))
		take(t, b, "k")
		proxy.Fail(faultproxy.Cut, 1)
		if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 70, 1)); !unknown(err) {
			t.Errorf("error %v, want one that says that it may have been charged", err)
		}
		proxy.Fail(faultproxy.None, 0)
		if got := counted(t, b, "k"); got != 71 {
			t.Errorf("%d counted, want 1 and 70", got)
		}
		server.MustDo("SCRIPT", "FLUSH") // it has not run: it is sent again
		if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 5, 1)); err != nil {
			t.Errorf("a server that has forgotten the script: %v", err)
		}
		if got := counted(t, b, "k"); got != 76 {
			t.Errorf("%d counted, want 76", got)
		}
	})
}

// A charge to a server that writes nothing proves that nothing was charged.
func TestAChargeThatHasNotRun(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	server.MustDo("CONFIG", "SET", "maxmemory", "1")
	if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 1, 1)); !of(redisstore.ClassFull, false)(err) || !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("a full server: %v", err)
	}
	server.MustDo("CONFIG", "SET", "maxmemory", "0")
	server.MustDo("REPLICAOF", "127.0.0.1", "1")
	if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 1, 1)); !of(redisstore.ClassNotReady, false)(err) || !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("a replica: %v", err)
	}
	server.MustDo("REPLICAOF", "NO", "ONE")
	if got := charged(t, b, "k"); got != 1 {
		t.Errorf("%d counted, want 1", got)
	}
}

// A client that hangs up is charged, on one server and on several.
func TestAChargeWhoseClientHangsUp(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	for name, client := range map[string]redisstore.Client{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, client, daily, redisstore.Timeout(patience))
			keys := keysOn(cluster, bindName(t))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for range 5 {
				batch := &core.Batch{}
				for _, k := range keys {
					item := one(k, 3, 1).Items[0]
					item.Quotas = []int64{core.Unlimited}
					batch.Items = append(batch.Items, item)
				}
				_ = storetest.Do(ctx, b, core.OpCharge, batch)
				for i := range batch.Items { // the caller's again
					batch.Items[i].Quotas[0], batch.Items[i].Cost = 0, 999
				}
			}
			for _, k := range keys {
				processtest.WaitFor(t, "all charges", func() bool { return counted(t, b, k) == 15 })
			}
		})
	}
}

// chargedCompany is company whose callers charge: each with a cost, and every third
// with a quota of its own, which no charge observes.
func chargedCompany(t *testing.T, strike func(*company)) (c *company, errs []error) {
	c = newCompany(t, patience)
	c.proxy.Hold()
	c.wg.Go(func() { _ = storetest.Do(context.Background(), c.bound, core.OpTake, one("first", 1, 1)) })
	processtest.WaitFor(t, "the decision before", func() bool { return c.proxy.Held() > 0 })
	errs = make([]error, travellers)
	var wg sync.WaitGroup
	for i := range travellers {
		wg.Go(func() {
			batch := one(c.key(i), c.cost(i), 1)
			if i%3 == 0 {
				batch.Items[0].Quotas = []int64{int64(i)}
			}
			errs[i] = storetest.Do(context.Background(), c.bound, core.OpCharge, batch)
			if errs[i] == nil && (!batch.Allowed || !batch.Items[0].Results[0].Allowed || batch.Items[0].Results[0].RetryAfter != 0) {
				t.Errorf("caller %d: %+v", i, batch)
			}
		})
	}
	processtest.WaitFor(t, "company", func() bool { return redisstore.Waiting(c.store) == travellers })
	c.server.MustDo("CONFIG", "RESETSTAT")
	if strike != nil {
		strike(c)
	}
	c.proxy.Release()
	wg.Wait()
	c.wg.Wait()
	if n := commands(t, c.server, "evalsha"); n != 1 {
		t.Errorf("%d commands, want one", n)
	}
	// The counts of keys that are beyond their quota are seen with a larger one.
	seen := func(key string) int64 {
		batch := one(key, 0, 1)
		batch.Items[0].Quotas = []int64{1000}
		if err := storetest.Do(t.Context(), c.other, core.OpTake, batch); err != nil {
			t.Fatal(err)
		}
		return 1000 - batch.Items[0].Results[0].Remaining
	}
	if got := seen("shared"); got != travellers/2 {
		t.Errorf("%d counted of %d charges of 1", got, travellers/2)
	}
	for i := 0; i < travellers; i += 2 {
		if got := seen(c.key(i)); got != c.cost(i) {
			t.Errorf("caller %d: %d counted, want %d", i, got, c.cost(i))
		}
	}
	return c, errs
}

// Charges that come together are one command, and each is made.
func TestChargesTravelTogether(t *testing.T) {
	_, errs := chargedCompany(t, nil)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// The one reply to many charges is lost: each is counted once, and unknown.
func TestALostReplyToManyChargesIsCountedOnceEach(t *testing.T) {
	_, errs := chargedCompany(t, func(c *company) { c.proxy.Fail(faultproxy.Cut, 1) })
	for i, err := range errs {
		if !unknown(err) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
}

// A charge to keys on several nodes goes on when one of them fails, unless nothing
// has been charged yet: then it may be tried again.
func TestAChargeOfSeveralSlotsThatFailsForOne(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for failing, want := range [][]int64{{0, 0, 0}, {4, 0, 4}, {4, 4, 0}} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			client.AddHook(refusing{stored(t, keys[failing]), "charge"})
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for _, k := range keys {
				batch.Items = append(batch.Items, one(k, 4, 1).Items...)
			}
			err := storetest.Do(t.Context(), b, core.OpCharge, batch)
			if !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) != (failing == 0) {
				t.Errorf("error %v", err)
			}
			for i, k := range keys {
				if got := counted(t, b, k); got != want[i] {
					t.Errorf("key %d: %d counted, want %d", i, got, want[i])
				}
			}
		})
	}
}

// Charges are given back in part, on every kind of server.
func TestAChargeIsGivenBackInPart(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	single := newClient(t, redistest.Start(t).Addr)
	for name, c := range map[string]struct {
		client redisstore.Client
		opts   []redisstore.Option
	}{
		"Single": {single, nil}, "Cluster": {several, nil}, "Wrapped": {struct{ redisstore.Client }{several}, nil},
		"ShardedByKey": {single, []redisstore.Option{redisstore.ShardedByKey()}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, c.client, daily, append(c.opts, redisstore.Timeout(patience))...)
			keys := keysOn(cluster, bindName(t))
			batch := &core.Batch{}
			for _, k := range keys {
				batch.Items = append(batch.Items, one(k, 30, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil || !batch.Allowed {
				t.Fatalf("allowed %v, error %v", batch.Allowed, err)
			}
			for i := range batch.Items {
				if r := batch.Items[i].Results[0]; !r.Allowed || r.Remaining != 1_000_000-30 || batch.Items[i].At == 0 {
					t.Errorf("key %d: %+v", i, batch.Items[i])
				}
				batch.Items[i].Cost = int64(10 + i)
			}
			if err := storetest.Do(t.Context(), b, core.OpRefund, batch); err != nil {
				t.Fatal(err)
			}
			for i, k := range keys {
				if got := counted(t, b, k); got != int64(20-i) {
					t.Errorf("key %d: %d counted, want %d", i, got, 20-i)
				}
			}
		})
	}
}

// A charge does not replace the value of a later version, and then charges none of
// its keys. Nor does a take without a limit.
func TestAChargeKeepsTheValueOfANewerVersion(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	const value = "\x03of a newer version"
	server.MustDo("SET", stored(t, "new"), value, "PX", "50000")
	batch := one("old", 1, 1)
	batch.Items = append(batch.Items, one("new", 1, 1).Items...)
	err := storetest.Do(t.Context(), b, core.OpCharge, batch)
	if !errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), stored(t, "new")) {
		t.Errorf("error %v, want one that names the value and says that nothing was charged", err)
	}
	batch.Items[0].Quotas, batch.Items[1].Quotas = []int64{core.Unlimited}, []int64{core.Unlimited}
	if err := storetest.Do(t.Context(), b, core.OpTake, batch); err != nil || batch.Allowed {
		t.Errorf("without a limit: allowed %v, error %v", batch.Allowed, err)
	}
	batch.Items[1].Cost = 0
	if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
		t.Errorf("a cost of 0: %v", err)
	}
	if got := charged(t, b, "old"); got != 1 {
		t.Errorf("%d counted, want that of the last charge", got)
	}
	if got := server.MustDo("GET", stored(t, "new")); got != value {
		t.Errorf("the value became %q", got)
	}
}

// A charge to a value that cannot be read is counted, and the value denies its key
// all the same, or is replaced.
func TestAChargeToAValueThatCannotBeRead(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	t.Run("denied", func(t *testing.T) {
		b, name, clock, log := denying(t, client)
		server.MustDo("SET", name, "abc")
		batch := one("k", 7, 2)
		if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil || !batch.Allowed {
			t.Fatalf("allowed %v, error %v", batch.Allowed, err)
		}
		if !strings.Contains(log.String(), "cannot be read") {
			t.Errorf("logged %q", log)
		}
		for range 2 {
			if takeTwo(t, b).Allowed {
				t.Error("the key is not denied")
			}
			clock.Advance(59 * time.Minute)
		}
		clock.Advance(-58*time.Minute + time.Microsecond)
		if r := takeTwo(t, b).Items[0].Results; r[0].Remaining != 50-7 || r[1].Allowed {
			t.Errorf("after an hour: %+v, want 7 charged", r)
		}
	})
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	server.MustDo("SET", stored(t, "k"), "abc")
	if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 7, 1)); err != nil {
		t.Fatal(err)
	}
	if got := charged(t, b, "k"); got != 7 {
		t.Errorf("%d counted of a value that is replaced, want 7", got)
	}
}

func grant(ctx context.Context, b core.Counters, batch *core.Batch) error {
	return storetest.Do(ctx, b, core.OpGrant, batch)
}

// The reply to a grant is lost, and the client would send it again.
func TestAGrantWhoseReplyIsLostIsMadeOnce(t *testing.T) {
	clients(t, func(t *testing.T, client redisstore.Client, proxy *faultproxy.Proxy, server *redistest.Server) {
		b := bind(t, client, daily, redisstore.Timeout(patience))
		if err := storetest.Do(t.Context(), b, core.OpCharge, one("k", 100, 1)); err != nil {
			t.Fatal(err)
		}
		proxy.Fail(faultproxy.Cut, 1)
		if err := grant(t.Context(), b, one("k", 30, 1)); !unknown(err) {
			t.Errorf("error %v, want one that says that the hits may have been granted", err)
		}
		proxy.Fail(faultproxy.None, 0)
		if got := counted(t, b, "k"); got != 70 {
			t.Errorf("%d counted, want 100 less 30", got)
		}
		server.MustDo("SCRIPT", "FLUSH") // it has not run: it is sent again
		if err := grant(t.Context(), b, one("k", 5, 1)); err != nil {
			t.Errorf("a server that has forgotten the script: %v", err)
		}
		if got := counted(t, b, "k"); got != 65 {
			t.Errorf("%d counted, want 65", got)
		}
	})
}

// A grant whose caller hangs up is made, on one server and on several.
func TestAGrantWhoseCallerHangsUp(t *testing.T) {
	t.Parallel()
	cluster, several := newCluster(t)
	for name, client := range map[string]redisstore.Client{"Single": newClient(t, redistest.Start(t).Addr), "Cluster": several} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for _, k := range keysOn(cluster, bindName(t)) {
				batch.Items = append(batch.Items, one(k, 50, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
				t.Fatal(err)
			}
			for i := range batch.Items {
				batch.Items[i].Cost = 3
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = grant(ctx, b, batch)
			for _, it := range batch.Items {
				processtest.WaitFor(t, "the grants", func() bool { return counted(t, b, string(it.Key)) == 47 })
			}
		})
	}
}

// Grants to keys on several nodes go on when one of them fails, unless nothing has been
// granted yet: then they may be tried again.
func TestAGrantOfSeveralSlotsThatFailsForOne(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	for failing, want := range [][]int64{{9, 9, 9}, {5, 9, 5}, {5, 5, 9}} {
		t.Run(fmt.Sprint(failing), func(t *testing.T) {
			keys := keysOn(cluster, bindName(t))
			client.AddHook(refusing{stored(t, keys[failing]), "grant"})
			b := bind(t, client, daily, redisstore.Timeout(patience))
			batch := &core.Batch{}
			for _, k := range keys {
				batch.Items = append(batch.Items, one(k, 9, 1).Items...)
			}
			if err := storetest.Do(t.Context(), b, core.OpCharge, batch); err != nil {
				t.Fatal(err)
			}
			for i := range batch.Items {
				batch.Items[i].Cost = 4
			}
			if err := grant(t.Context(), b, batch); !errors.Is(err, errRefused) || errors.Is(err, core.ErrNotCharged) != (failing == 0) {
				t.Errorf("error %v", err)
			}
			for i, k := range keys {
				if got := counted(t, b, k); got != want[i] {
					t.Errorf("key %d: %d counted, want %d", i, got, want[i])
				}
			}
		})
	}
}

// The value of a later version is not replaced by a grant, and one that cannot be read
// grants nothing.
func TestAGrantKeepsWhatItCannotRead(t *testing.T) {
	server := redistest.Start(t)
	b := bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience))
	for value, fails := range map[string]bool{"\x03newer": true, "nonsense": false} {
		server.MustDo("SET", stored(t, "k"), value)
		if err := grant(t.Context(), b, one("k", 1, 1)); (err != nil) != fails {
			t.Errorf("%q: %v", value, err)
		}
		if got := server.MustDo("GET", stored(t, "k")); got != value {
			t.Errorf("%q became %q", value, got)
		}
	}
}
