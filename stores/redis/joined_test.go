package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// company is a number of callers whose decisions travel together. Half of them have
// a key of their own, the others share one. The quotas are those of hourly.
type company struct {
	t      *testing.T
	proxy  *faultproxy.Proxy
	server *redistest.Server
	client *redis.Client
	store  *redisstore.Store
	bound  core.Counters
	other  core.Counters // counts the same, not through the proxy

	before  int64 // hits of the shared key
	batches []*core.Batch
	errs    []error
	took    []time.Duration
	wg      sync.WaitGroup
}

const travellers = 50

func newCompany(t *testing.T, timeout time.Duration, options ...string) *company {
	c := &company{t: t, server: redistest.Start(t, options...)}
	c.proxy = faultproxy.Start(t, c.server.Addr)
	c.client = redis.NewClient(&redis.Options{Addr: c.proxy.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.client.Close() })
	c.store = redisstore.OneAtATime(redisstore.New(c.client, redisstore.Timeout(timeout), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()))
	c.bound = core.Must(c.store.Open(bindName(t), hourly))
	c.other = bind(t, newClient(t, c.server.Addr), hourly, redisstore.Timeout(patience))
	processtest.WaitFor(t, "a connection and the script", func() bool { return storetest.Do(t.Context(), c.bound, core.OpTake, one("first", 1, 1)) == nil })
	return c
}

func (c *company) key(i int) string {
	if i%2 == 1 {
		return "shared"
	}
	return fmt.Sprint("own", i)
}

// cost is that of the caller's decision: of those with keys of their own, several.
func (c *company) cost(i int) int64 {
	if i%2 == 1 {
		return 1
	}
	return 1 + int64(i/2%9)
}

// gather holds the reply of a decision until n callers of f have come that are to travel together,
// calls strike, and lets them go.
func (c *company) gather(n int, f func(i int), strike func()) {
	c.t.Helper()
	c.proxy.Hold()
	c.wg.Go(func() { _ = storetest.Do(context.Background(), c.bound, core.OpTake, one("first", 1, 1)) })
	processtest.WaitFor(c.t, "the decision before", func() bool { return c.proxy.Held() > 0 })
	for i := range n {
		if i == n/2 { // the others come later, and have later deadlines
			processtest.WaitFor(c.t, "the first half", func() bool { return redisstore.Waiting(c.store) == i })
		}
		c.wg.Go(func() { f(i) })
	}
	processtest.WaitFor(c.t, "company", func() bool { return redisstore.Waiting(c.store) == n })
	c.server.MustDo("CONFIG", "RESETSTAT")
	if strike != nil {
		strike()
	}
	c.proxy.Release()
}

// travel lets the callers decide together.
func (c *company) travel(strike func()) {
	c.t.Helper()
	c.batches, c.errs, c.took = make([]*core.Batch, travellers), make([]error, travellers), make([]time.Duration, travellers)
	c.gather(travellers, func(i int) {
		c.batches[i] = one(c.key(i), c.cost(i), 1)
		begun := time.Now()
		c.errs[i] = storetest.Do(context.Background(), c.bound, core.OpTake, c.batches[i])
		c.took[i] = time.Since(begun)
	}, strike)
}

// check waits for the callers, and compares what each was told with what the server
// has counted. want says of an error whether it is the one that is expected.
func (c *company) check(want func(error) bool) {
	c.t.Helper()
	c.wg.Wait()
	var allowed, unknown int64
	for i, batch := range c.batches {
		err := c.errs[i]
		var e *redisstore.Error
		is := errors.As(err, &e)
		switch {
		case !want(err):
			c.t.Errorf("caller %d: error %v", i, err)
		case err != nil && !is:
			c.t.Fatalf("caller %d: error %v is no *Error", i, err)
		case errors.Is(err, core.ErrNotCharged) != (err != nil && !e.Unknown):
			c.t.Errorf("caller %d: error %v contradicts itself", i, err)
		}
		// What this caller alone may have charged.
		least, most := int64(0), int64(0)
		if err == nil && batch.Allowed {
			least, most = c.cost(i), c.cost(i)
		} else if err != nil && e.Unknown {
			most = c.cost(i)
		}
		if left := batch.Items[0].Results[0].Remaining; err == nil && c.key(i) != "shared" && left != 10-least {
			c.t.Errorf("caller %d: %d remain after a charge of %d", i, left, least)
		}
		if c.key(i) == "shared" {
			allowed, unknown = allowed+least, unknown+most-least
		} else if got := charged(c.t, c.other, c.key(i)); got < least || got > most {
			c.t.Errorf("caller %d: allowed %v, error %v, and %d charged", i, batch.Allowed, err, got)
		}
	}
	if got := charged(c.t, c.other, "shared") - c.before; got < allowed || got > allowed+unknown {
		c.t.Errorf("%d admitted of a quota of 10, %d may have been, and %d charged", allowed, unknown, got)
	}
}

// fine is what callers expect who are told whether they are admitted.
func fine(err error) bool { return err == nil }

// of tells whether an error is of the class, and whether it says that nothing was charged.
func of(says string, charged bool) func(error) bool {
	return func(err error) bool {
		var e *redisstore.Error
		return errors.As(err, &e) && strings.Contains(err.Error(), says) && e.Unknown == charged
	}
}

// Decisions that come together are one command, and each is its own. If the server has forgotten the script,
// it is sent once for all.
func TestDecisionsTravelTogether(t *testing.T) {
	c := newCompany(t, patience)
	c.travel(func() { c.server.MustDo("SCRIPT", "FLUSH") })
	c.check(fine)
	admitted := 0
	for i, b := range c.batches {
		if c.key(i) != "shared" && !b.Allowed {
			t.Errorf("caller %d is denied, whose key nobody has", i)
		} else if c.key(i) == "shared" && b.Allowed {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("%d of 25 were admitted, want 10", admitted)
	}
	if n, evals := commands(t, c.server, "evalsha"), commands(t, c.server, "eval"); n != 1+26 || evals != 1 { // check's
		t.Errorf("%d commands and %d with the script, want one of each, and 26 peeks", n, evals)
	}
}

// The one reply of many is lost: it is unknown to each, and nobody is charged twice.
func TestALostReplyOfManyIsChargedOnceEach(t *testing.T) {
	c := newCompany(t, patience)
	c.travel(func() { c.proxy.Fail(faultproxy.Cut, 1) })
	c.check(of("", true))
	for i := range travellers {
		if got := charged(t, c.other, c.key(i)); i%2 == 0 && got != c.cost(i) {
			t.Errorf("caller %d: %d charged by a command that has run", i, got)
		}
	}
	if got := charged(t, c.other, "shared"); got != 10 {
		t.Errorf("%d charged of a quota of 10", got)
	}
	take(t, c.bound, "next") // the line goes on
}

// The reply of many does not come, or too late: each returns in time.
func TestALateReplyOfManyKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for name, strike := range map[string]func(p *faultproxy.Proxy){
		"swallowed": func(p *faultproxy.Proxy) { p.Fail(faultproxy.Swallow, 1) },
		"late":      func(p *faultproxy.Proxy) { p.Delay(4 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			const timeout = 2 * time.Second
			c := newCompany(t, timeout)
			c.travel(func() { strike(c.proxy) })
			c.check(of(context.DeadlineExceeded.Error(), true))
			for i, took := range c.took {
				if took < timeout {
					t.Errorf("caller %d: a timeout of %v after %v", i, timeout, took)
				}
			}
			c.proxy.Delay(0)
		})
	}
}

// Callers whose deadline passes before their exchange begins are not charged, not even later.
func TestWhoWaitsForTooLongIsNotCharged(t *testing.T) {
	t.Parallel()
	c := newCompany(t, 300*time.Millisecond)
	c.travel(func() { c.wg.Wait() })
	c.check(of(context.DeadlineExceeded.Error(), false))
	processtest.WaitFor(t, "the next decision", func() bool { return storetest.Do(t.Context(), c.bound, core.OpTake, one("next", 1, 1)) == nil })
	c.check(of(context.DeadlineExceeded.Error(), false))
}

// movable listens at an address whose new connections go to the target of the moment,
// as those of a service name or a virtual address do. Connections that exist stay.
func movable(t *testing.T, target *atomic.Value) string {
	t.Helper()
	l := core.Must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target.Load().(string))
			if err != nil {
				_ = near.Close()
				continue
			}
			for from, to := range map[net.Conn]net.Conn{near: far, far: near} {
				go func() {
					_, _ = io.Copy(to, from)
					_ = to.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

// The primary behind an address has become a replica, and new connections find the new
// one. The store leaves the old one, like the client does for other commands.
func TestAPrimaryThatIsDemotedIsLeft(t *testing.T) {
	for _, atOnce := range []int{1, 20} {
		t.Run(fmt.Sprint(atOnce, " callers"), func(t *testing.T) {
			before, after := redistest.Start(t), redistest.Start(t)
			var target atomic.Value
			target.Store(before.Addr)
			client := redis.NewClient(&redis.Options{Addr: movable(t, &target), PoolSize: 4})
			defer client.Close() //nolint:errcheck // the test is over
			b := bind(t, client, hourly, redisstore.Timeout(patience))
			together(8, func(i int) { take(t, b, fmt.Sprint("before", i)) })
			target.Store(after.Addr)
			before.MustDo("REPLICAOF", "127.0.0.1", "1")
			for round := range 5 {
				together(atOnce, func(i int) { take(t, b, fmt.Sprint("after", round, "-", i)) })
			}
			primary := bind(t, newClient(t, after.Addr), hourly, redisstore.Timeout(patience))
			if got := charged(t, primary, "after4-0"); got != 1 {
				t.Errorf("the new primary has charged %d, want 1", got)
			}
		})
	}
}

// The server has become a replica. It becomes a primary again, or not.
func TestAReplicaRefusesAll(t *testing.T) {
	c := newCompany(t, 2*time.Second)
	c.travel(func() { c.server.MustDo("REPLICAOF", "127.0.0.1", "1") })
	c.wg.Wait()
	c.server.MustDo("REPLICAOF", "NO", "ONE")
	c.check(of("READONLY", false))

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

// The server has no memory left, or the user may not write: those who would be charged fail, and
// those who are denied are told so.
func TestADeniedWriteFailsOnlyWhoWouldBeCharged(t *testing.T) {
	for says, command := range map[string][]string{
		"OOM":                    {"CONFIG", "SET", "maxmemory", "1"},
		"can't run this command": {"ACL", "SETUSER", "default", "-set"},
	} {
		c := newCompany(t, patience, "--maxmemory-policy", "noeviction")
		for range 10 {
			take(t, c.other, "shared")
		}
		c.before = 10
		c.travel(func() { c.server.MustDo(command...) })
		c.check(func(err error) bool { return err == nil || of(says, false)(err) })
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
	c.check(func(err error) bool { return err == nil || of("NOPERM", false)(err) })
	for i, err := range c.errs {
		if (c.key(i) == "own6") != (err != nil) {
			t.Errorf("caller %d: error %v", i, err)
		}
	}
}

// A value that cannot be read, or is of another type, concerns its caller only.
func TestAnUnreadableValueDeniesItsCallerOnly(t *testing.T) {
	c := newCompany(t, patience)
	rules := slices.Clone(hourly)
	rules[0].DenyUnreadable = true
	c.bound = core.Must(c.bound.Reopen(rules))
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
			do(t, c.bound, core.OpTake, b)
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

// As many replies are lost as there are commands under way at most. Those who come then do not wait for them.
func TestLostRepliesHoldNobodyUp(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Start(t).Addr)
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: -1})
	t.Cleanup(func() { _ = client.Close() })
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	take(t, b, "warm")
	proxy.Fail(faultproxy.Swallow, 12)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() { _ = storetest.Do(context.Background(), b, core.OpTake, one(fmt.Sprint("lost", i), 1, 1)) })
		processtest.WaitFor(t, "a lost reply", func() bool { return proxy.Lost() > i })
	}
	begun := time.Now()
	take(t, b, "next")
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("the next decision took %v", took)
	}
	proxy.CutAll()
	wg.Wait()
}
