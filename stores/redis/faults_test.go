package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

var hourly = []core.StoreRule{{Name: "r", Limits: []core.Limit{core.PerHour(10)}}}

// bind binds a store, without denial cache, with the client and rules to a name of its own.
func bind(t testing.TB, client redis.UniversalClient, rules []core.StoreRule, opts ...redisstore.Option) core.Counters {
	t.Helper()
	return core.Must(redisstore.New(client, append(opts, redisstore.WithoutDenialCache(), redisstore.AnotherInstance())...).Open(bindName(t), rules))
}

// one makes a batch of one key of the first rule, whose rule has so many limits.
func one(key string, cost int64, limits int) *core.Batch {
	return &core.Batch{Items: []core.Item{{Key: []byte(key), Cost: cost, Results: make([]core.Result, limits)}}}
}

// do does an operation that must not fail.
func do(t testing.TB, b core.Counters, op core.Op, batch *core.Batch) {
	t.Helper()
	if err := storetest.Do(context.Background(), b, op, batch); err != nil {
		t.Fatalf("%v: %v", op, err)
	}
}

func take(t testing.TB, b core.Counters, key string) *core.Batch {
	t.Helper()
	batch := one(key, 1, 1)
	do(t, b, core.OpTake, batch)
	return batch
}

// charged returns how many hits of hourly's quota are gone.
func charged(t testing.TB, b core.Counters, key string) int64 {
	t.Helper()
	batch := one(key, 0, 1)
	do(t, b, core.OpPeek, batch)
	return 10 - batch.Items[0].Results[0].Remaining
}

// clients are the clients whose options could charge twice, or keep waiting: each before a proxy. None has a
// deadline of its own for an answer: a test in which the store's does not hold never ends.
func clients(t *testing.T, f func(t *testing.T, client redis.UniversalClient, proxy *faultproxy.Proxy, server *redistest.Server)) {
	const retries = 3
	for _, c := range []struct {
		name string
		make func(addr string) redis.UniversalClient
	}{
		{"Client", func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: retries, ReadTimeout: -1})
		}},
		{"ContextTimeoutEnabled", func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: retries, ReadTimeout: -1, ContextTimeoutEnabled: true})
		}},
		{"Ring", func(addr string) redis.UniversalClient {
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}, MaxRetries: retries, ReadTimeout: -1, HeartbeatFrequency: time.Hour})
		}},
		{"ClusterClient", func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{
				MaxRedirects: 8, MaxRetries: retries, ReadTimeout: -1,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: redistest.Slots - 1, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
				},
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := faultproxy.Start(t, server.Addr)
			client := c.make(proxy.Addr)
			t.Cleanup(func() { _ = client.Close() })
			f(t, client, proxy, server)
		})
	}
}

// The reply is lost, and the client would send it again. A command that has not run is sent again.
func TestALostReplyIsChargedOnce(t *testing.T) {
	clients(t, func(t *testing.T, client redis.UniversalClient, proxy *faultproxy.Proxy, server *redistest.Server) {
		// That the fault is one: the client repeats a command of anybody else's.
		incr := func() *redis.IntCmd {
			cmd := redis.NewIntCmd(t.Context(), "incr", "counter")
			_ = client.Process(t.Context(), cmd)
			return cmd
		}
		incr()
		proxy.Fail(faultproxy.Cut, 1)
		if got := incr().Val(); got != 3 {
			t.Fatalf("the client has counted to %d by two commands: it is the fault that this test needs to be 3", got)
		}

		b := bind(t, client, daily, redisstore.Timeout(patience))
		take(t, b, "k")
		want := int64(1)
		for _, row := range []struct {
			op   core.Op
			sign int64
		}{{core.OpTake, 1}, {core.OpCharge, 1}, {core.OpGrant, -1}} {
			proxy.Fail(faultproxy.Cut, 1)
			var e *redisstore.Error
			if err := storetest.Do(t.Context(), b, row.op, one("k", 70, 1)); !errors.As(err, &e) || !e.Unknown || errors.Is(err, core.ErrNotCharged) {
				t.Errorf("%v: error %v, want one that says that it may have been made", row.op, err)
			}
			proxy.Fail(faultproxy.None, 0)
			if want += 70 * row.sign; counted(t, b, "k") != want {
				t.Errorf("%v: %d counted, want %d", row.op, counted(t, b, "k"), want)
			}
			server.MustDo("SCRIPT", "FLUSH")
			if err := storetest.Do(t.Context(), b, row.op, one("k", 5, 1)); err != nil {
				t.Errorf("%v: a server that has forgotten the script: %v", row.op, err)
			}
			if want += 5 * row.sign; counted(t, b, "k") != want {
				t.Errorf("%v: %d counted, want %d", row.op, counted(t, b, "k"), want)
			}
		}
	})
}

// No reply comes at all.
func TestASwallowedReplyKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	clients(t, func(t *testing.T, client redis.UniversalClient, proxy *faultproxy.Proxy, _ *redistest.Server) {
		const timeout = time.Second
		patient := bind(t, client, hourly, redisstore.Timeout(patience))
		take(t, patient, "k")
		hasty := redisstore.New(client, redisstore.Timeout(timeout), redisstore.AnotherInstance())
		b := core.Must(hasty.Open("hasty", hourly))
		take(t, b, "k")
		proxy.Fail(faultproxy.Swallow, -1)
		err := storetest.Do(t.Context(), b, core.OpTake, one("k", 1, 1))
		var e *redisstore.Error
		if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || !e.Unknown {
			t.Errorf("error %v, want a timeout that says that it may have been charged", err)
		}
		var ended atomic.Int64
		client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			defer ended.Add(1)
			return next(ctx, cmd)
		}))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for ctx, cause := range map[context.Context]error{t.Context(): context.DeadlineExceeded, gone: context.Canceled} {
			if _, _, err := hasty.AcquireSlot(ctx, "hasty", inflight.Slot{Key: "k", ID: 1}, 1, time.Minute); !of(cause.Error(), true)(err) {
				t.Errorf("a slot: error %v, want %v", err, cause)
			}
			if err := storetest.Do(ctx, b, core.OpResetAll, new(core.Batch)); !errors.Is(err, cause) {
				t.Errorf("a reset of all: error %v, want %v", err, cause)
			}
		}
		proxy.Fail(faultproxy.None, 0)
		processtest.WaitFor(t, "the commands of the slots to end", func() bool { proxy.CutAll(); return ended.Load() >= 2 })
		patientAgain := core.Must(redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance()).Open("hasty", hourly))
		if got := charged(t, patientAgain, "k"); got != 2 {
			t.Errorf("%d charged by two takes", got)
		}
	})
}

// What a server denies charges nothing. It goes on when the server permits it again.
func TestWhatAServerDenies(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limited", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	permitted := []string{"ACL", "SETUSER", "limited", "reset", "on", ">secret", "~fg1:*", "+@connection", "+evalsha", "+eval", "+getrange", "+set", "+setrange", "+time", "+del"}
	server.MustDo(permitted...)
	store := redisstore.New(client, redisstore.Timeout(patience))
	if err := store.Ping(t.Context()); err != nil {
		t.Errorf("Ping with the rights that the documentation names: %v", err)
	}
	b := bind(t, client, hourly, redisstore.Timeout(time.Second))
	take(t, b, "k")
	acl := func(rights ...string) func() {
		return func() { server.MustDo(append([]string{"ACL", "SETUSER", "limited"}, rights...)...) }
	}
	changePassword := func() {
		acl("resetpass", ">changed")()
		server.MustDo("CLIENT", "KILL", "TYPE", "normal")
		processtest.WaitFor(t, "the connections to end", func() bool {
			return redis.HasErrorPrefix(client.Ping(t.Context()).Err(), "WRONGPASS")
		})
	}
	for i, c := range []struct {
		says        string
		deny, again func()
	}{
		{"can't run this command", acl("-set", "-setrange"), acl("+set", "+setrange")},
		{"NOPERM", acl("-evalsha"), acl("+evalsha")},
		{"NOPERM", acl("resetkeys", "~other:*"), acl("~fg1:*")},
		{"WRONGPASS", changePassword, acl("resetpass", ">secret")},
		{"OOM", func() { server.MustDo("CONFIG", "SET", "maxmemory", "1") }, func() { server.MustDo("CONFIG", "SET", "maxmemory", "0") }},
		{"READONLY", func() { server.MustDo("REPLICAOF", "127.0.0.1", "1") }, func() { server.MustDo("REPLICAOF", "NO", "ONE") }},
	} {
		c.deny()
		err := storetest.Do(t.Context(), b, core.OpTake, one("k", 1, 1))
		var e *redisstore.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || !errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%d: error %v, want %s, and nothing charged", i, err, c.says)
		}
		c.again()
		take(t, b, "k")
		if got := charged(t, b, "k"); got != int64(i)+2 {
			t.Errorf("%d: %d charged by %d takes that were answered", i, got, i+2)
		}
	}
}

// If a command fails after another key has been written, the error does not say that nothing was
// charged. A refund deletes a key of which nothing is left, and sets another.
func TestAWriteThatIsDenied(t *testing.T) {
	for _, written := range []bool{true, false} {
		server := redistest.Start(t)
		f := newFormatted(t, server, core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket})
		gone, left := one("gone", 1, 1), one("left", 3, 1)
		for _, b := range []*core.Batch{gone, left} {
			do(t, f.bound, core.OpTake, b)
		}
		left.Items[0].Cost = 1
		both := &core.Batch{Items: []core.Item{gone.Items[0], left.Items[0]}}
		if !written {
			slices.Reverse(both.Items)
		}
		server.MustDo("ACL", "SETUSER", "default", "-set", "-setrange")
		if err := storetest.Do(t.Context(), f.bound, core.OpRefund, both); err == nil || errors.Is(err, core.ErrNotCharged) == written {
			t.Errorf("error %v; written %t", err, written)
		}
		if exists := server.MustDo("EXISTS", stored(t, "gone")); !written && exists != ":1" {
			t.Error("a key is written after one that could not be")
		}
	}
}

// The clocks of two processes differ by a window: the log of the one behind says so,
// once. By less, it says nothing.
func TestClocksThatDifferByAWindowAreLoggedOnce(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	for name, c := range map[string]struct {
		limit core.Limit
		apart time.Duration
		want  int
	}{
		"sliding window":       {core.PerHour(10), time.Hour, 1},
		"sliding window, less": {core.PerHour(10), time.Hour - time.Microsecond, 0},
		"token bucket":         {core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}, 3 * time.Hour, 1},
		"token bucket, less":   {core.Limit{Quota: 10, Window: time.Hour, Algorithm: core.TokenBucket}, time.Hour, 0},
		"calendar":             {core.PerDay(10).In(time.UTC), 24 * time.Hour, 1},
		"calendar, less":       {core.PerDay(10).In(time.UTC), 24*time.Hour - time.Microsecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			now := time.UnixMicro(0) // a time as any other
			bindAt := func(at time.Time) core.Counters {
				return bind(t, client, []core.StoreRule{{Name: "r", Limits: []core.Limit{c.limit}}}, redisstore.Timeout(patience),
					redisstore.Clock(func() time.Time { return at }), redisstore.Log(slog.New(slog.NewTextHandler(&log, nil))))
			}
			behind, ahead := bindAt(now), bindAt(now.Add(c.apart))
			for i := range 3 {
				for _, key := range []string{"k", fmt.Sprint(i)} {
					take(t, ahead, key)
					take(t, behind, key)
				}
			}
			want := `level=WARN msg="redis: a stored time is a window or more ahead: while clocks differ so much, limits do not hold" names=[` + stored(t, "k") +
				`] advice="set the clock of the Redis server and its replicas or, with redisstore.Clock, those of all instances" more=0` + "\n"
			if _, got, _ := strings.Cut(log.String(), " "); got != strings.Repeat(want, c.want) {
				t.Errorf("logged %q, want %d lines %q", &log, c.want, want)
			}
		})
	}
}

// A process whose clock is behind or ahead decides by the server's time. If no window is that near, the
// decision fails and charges nothing.
func TestTheServersTimeDecidesTheWindow(t *testing.T) {
	store := redisstore.New(newClient(t, redistest.Start(t).Addr), redisstore.Timeout(patience))
	limits := []core.Limit{core.PerMonth(100), core.PerHour(100), core.PerDay(10).In(time.UTC)}
	now := time.Now().UTC()
	middle := func(months int) time.Duration {
		return time.Date(now.Year(), now.Month()+time.Month(months), 15, 0, 0, 0, 0, time.UTC).Sub(now)
	}
	left := int64(100)
	for _, c := range []struct {
		ahead   time.Duration
		limits  int
		decides bool
	}{
		{middle(-1), 1, true}, {middle(1), 1, true}, {middle(2), 1, false}, {middle(-2), 1, false}, // the first begins the month
		{0, 3, true}, {24 * time.Hour, 3, true}, {-24 * time.Hour, 3, true}, {49 * time.Hour, 3, false}, {-49 * time.Hour, 3, false}, {0, 3, true},
	} {
		bound := redisstore.OpenAhead(store, []core.StoreRule{{Name: "r", Limits: limits[:c.limits]}}, c.ahead)
		before := time.Now().UTC()
		b := one("k", 2, c.limits)
		err := storetest.Do(t.Context(), bound, core.OpTake, b)
		if !c.decides {
			if !errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), "the clocks of the caller and the server differ") {
				t.Errorf("ahead %v: error %v", c.ahead, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		left -= 2
		month := time.Date(before.Year(), before.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		r := b.Items[0].Results[0]
		if wait := month.Sub(before); r.Remaining != left || r.ResetAfter > wait || r.ResetAfter < wait-time.Minute {
			t.Errorf("ahead %v: %+v, and the month ends in %v", c.ahead, r, wait)
		}
	}
}

// A reset of all returns the error of a server that keeps a key.
func TestAResetOfAllThatFails(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	client.AddHook(before("reset", stored(t, "k"), refuse))
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	take(t, b, "k")
	err := storetest.Do(t.Context(), b, core.OpResetAll, new(core.Batch))
	var e *redisstore.Error
	if !errors.As(err, &e) || !errors.Is(err, errRefused) {
		t.Errorf("error %v, want one that wraps the client's", err)
	}
	if got := charged(t, b, "k"); got != 1 {
		t.Errorf("%d charged", got)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errRefused)
	if err := storetest.Do(ctx, b, core.OpResetAll, new(core.Batch)); !errors.Is(err, errRefused) {
		t.Errorf("after the caller has left: %v, want the cause", err)
	}
}

// daily has a quota that no test charges.
var daily = []core.StoreRule{{Name: "r", Limits: []core.Limit{{Quota: 1_000_000, Window: 24 * time.Hour}}}}

// counted returns how many hits of daily are gone.
func counted(t testing.TB, b core.Counters, key string) int64 {
	t.Helper()
	batch := one(key, 0, 1)
	do(t, b, core.OpPeek, batch)
	return 1_000_000 - batch.Items[0].Results[0].Remaining
}
