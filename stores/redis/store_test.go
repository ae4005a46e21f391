package redisstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/inflight"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most tests wait for servers for most of their time. -parallel decides, if it is given.
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// patience is the suite's timeout, which never passes: the suite tests decisions, on machines that may be busy.
const patience = 20 * time.Second

func newClient(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type onCommand = redisstore.OnCommand

// before calls f before each call with a verb for one key is sent, and fails it without sending it
// if f returns an error.
func before(verb, name string, f func() error) onCommand {
	return func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if args := cmd.Args(); len(args) > 4 && args[3] == name && redisstore.Verbs(cmd)[0] == verb {
			if err := f(); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

var errRefused = errors.New("refused by the test")

func refuse() error { return errRefused }

func factory(client redis.UniversalClient) storetest.Factory {
	return func(_ testing.TB, clock func() time.Time) core.Store {
		opts := []redisstore.Option{redisstore.Timeout(patience), redisstore.WithoutDenialCache(), redisstore.AnotherInstance()}
		if clock != nil {
			opts = append(opts, redisstore.Clock(clock))
		}
		return redisstore.New(client, opts...)
	}
}

func newCluster(t testing.TB) (*redistest.Cluster, *redis.ClusterClient) {
	cluster := redistest.StartCluster(t, 3)
	return cluster, newClusterClient(t, cluster)
}

func newClusterClient(t testing.TB, cluster *redistest.Cluster) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Package internal/clusters runs the same three tests with Redis Cluster.

func TestVectors(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, factory(newClient(t, redistest.Start(t).Addr)))
}

func TestOperations(t *testing.T) {
	t.Parallel()
	storetest.Operations(t, factory(newClient(t, redistest.Start(t).Addr)))
}

func TestShared(t *testing.T) {
	t.Parallel()
	client := newClient(t, redistest.Start(t).Addr)
	storetest.Shared(t, func(t testing.TB, clocks ...func() time.Time) (stores []core.Store) {
		for _, clock := range clocks {
			stores = append(stores, factory(client)(t, clock))
		}
		return stores
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, factory(newClient(t, redistest.Start(t).Addr)))
}

// bindName is the name of the limiter that a test's stores bind.
func bindName(t testing.TB) string {
	return strings.NewReplacer("/", ".", "=", "-", "#", "-").Replace(t.Name())
}

// stored returns the name under which the test's rule "r" has a key.
func stored(t testing.TB, key string) string {
	return core.StoreRule{Name: "r"}.StoredKey(bindName(t), []byte(key))
}

// rounds returns how many rounds a randomised test makes: n, or FLOODGATE_ROUNDS times n.
func rounds(n int) int {
	if times, err := strconv.Atoi(os.Getenv("FLOODGATE_ROUNDS")); err == nil {
		return times * n
	}
	return n
}

func TestGuarantees(t *testing.T) {
	t.Parallel()
	t.Run("Single", func(t *testing.T) {
		server := redistest.Start(t)
		storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed, KeepsDeadline: true, OneStep: true}, func(t testing.TB) storetest.Instances {
			proxy := faultproxy.Start(t, server.Addr)
			store := func() core.Store {
				return redisstore.New(newClient(t, proxy.Addr), redisstore.Timeout(2*time.Second), redisstore.AnotherInstance())
			}
			return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
		})
	})
	t.Run("Cluster", func(t *testing.T) {
		cluster, _ := newCluster(t)
		storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps, Exact: true, Shared: true, OnFailure: core.FailClosed, KeepsDeadline: true}, func(t testing.TB) storetest.Instances {
			store := func() core.Store {
				return redisstore.New(newClusterClient(t, cluster), redisstore.Timeout(patience), redisstore.AnotherInstance())
			}
			return storetest.Instances{Stores: []core.Store{store(), store()}}
		})
	})
}

// The shortest Timeout is a millisecond.
func TestTheShortestTimeout(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close() //nolint:errcheck // nothing was sent
	for timeout, valid := range map[time.Duration]bool{time.Millisecond: true, time.Millisecond - 1: false, 0: false, -time.Second: false} {
		_, err := redisstore.New(client, redisstore.Timeout(timeout), redisstore.AnotherInstance()).Open("a", hourly)
		if (err == nil) != valid || err != nil && (!errors.Is(err, core.ErrConfig) || err.Error() != "floodgate: configuration: Timeout: "+timeout.String()+": must be 1ms or more") {
			t.Errorf("%v: %v", timeout, err)
		}
	}
}

// Open and Ping return the errors of New's arguments. A nil option changes nothing.
func TestClientsThatCannotBeUsedAreNamed(t *testing.T) {
	for says, client := range map[string]redis.UniversalClient{
		"client: <nil>: must be a": nil, "client: *redis.Client: must be a": (*redis.Client)(nil), "client: *redis.Ring: must be a": (*redis.Ring)(nil),
		"client: *redis.ClusterClient: must be a": (*redis.ClusterClient)(nil), "client: struct { redis.UniversalClient }: must be a": struct{ redis.UniversalClient }{},
	} {
		s := redisstore.New(client, nil)
		_, err := s.Open("a", hourly)
		for _, err := range []error{err, s.Ping(t.Context())} {
			if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v, want %q", err, says)
			}
		}
	}
}

// A process binds a limiter's name once for each server, whatever the number of Store values and clients.
func TestANameIsBoundOnceForAServer(t *testing.T) {
	addr := redistest.Start(t).Addr
	first := redisstore.New(newClient(t, addr))
	defer first.Close() //nolint:errcheck // never fails
	if _, err := first.Open("names", hourly); err != nil {
		t.Fatal(err)
	}
	other := redisstore.New(newClient(t, addr))
	if _, err := other.Open("names", hourly); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), `Name: "names": another store of this process already counts on redis `+addr) {
		t.Errorf("through another client: %v", err)
	}
	if _, err := core.New(core.Config{Name: "names", Store: other, Rules: []core.Rule{perHour("r", 1)}}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("core.New: %v", err)
	}
	two := redis.NewClient(&redis.Options{Addr: addr, DB: 2})
	defer two.Close() //nolint:errcheck // the test is over
	for what, s := range map[string]*redisstore.Store{
		"in another database": redisstore.New(two),
		"on another server":   redisstore.New(newClient(t, "127.0.0.1:1")),
		"another instance":    redisstore.New(newClient(t, addr), redisstore.AnotherInstance()),
	} {
		if _, err := s.Open("names", hourly); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		_ = s.Close()
	}
	_ = first.Close()
	if _, err := other.Open("names", hourly); err != nil {
		t.Errorf("after the first store was closed: %v", err)
	}
	_ = other.Close()
}

// A client that has not one address is its own server.
func TestTheServersOfOtherClients(t *testing.T) {
	sentinels := func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	}
	cluster := func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	}
	for name, c := range map[string]func() redis.UniversalClient{"Sentinels": sentinels, "Cluster": cluster} {
		one, another := c(), c()
		first, same, other := redisstore.New(one), redisstore.New(one), redisstore.New(another)
		_, err := first.Open("servers", hourly)
		_, sameErr := same.Open("servers", hourly)
		_, otherErr := other.Open("servers", hourly)
		if err != nil || !errors.Is(sameErr, core.ErrConfig) || otherErr != nil {
			t.Errorf("%s: %v, the same client %v, another one %v", name, err, sameErr, otherErr)
		}
		_, _, _, _ = first.Close(), other.Close(), one.Close(), another.Close()
	}
}

// A store that nothing refers to any more gives up its names.
func TestADroppedStoreGivesUpItsNames(t *testing.T) {
	client := newClient(t, "127.0.0.1:1")
	opened := 0
	processtest.WaitFor(t, "the name to be given up", func() bool {
		if _, err := redisstore.New(client).Open("dropped", hourly); err == nil {
			opened++
		}
		runtime.GC()
		return opened == 2
	})
}

func TestAClosedStoreDoesNotCount(t *testing.T) {
	server := redistest.Start(t)
	for _, opts := range [][]redisstore.Option{nil, {redisstore.WithoutDenialCache()}} {
		s := redisstore.New(newClient(t, server.Addr), append(opts, redisstore.Timeout(patience))...)
		b := core.Must(s.Open("closed", hourly))
		for range 300 { // some are denied, and that is remembered
			take(t, b, "k")
		}
		before := server.MustDo("GET", core.StoreRule{Name: "r"}.StoredKey("closed", []byte("k")))
		for range 2 {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		batch := one("k", 1, 1)
		_, reopened := b.Reopen(hourly)
		_, opened := s.Open("closed", hourly)
		for what, err := range map[string]error{
			"Take": storetest.Do(context.Background(), b, core.OpTake, batch), "Refund": storetest.Do(context.Background(), b, core.OpRefund, batch), "Reset": storetest.Do(context.Background(), b, core.OpReset, batch),
			"Reopen": reopened, "Open": opened, "Ping": s.Ping(t.Context()),
			"Scan": s.Scan(t.Context(), "closed", hourly, func(redisstore.Stored) error { return nil }),
		} {
			if !errors.Is(err, core.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := server.MustDo("GET", core.StoreRule{Name: "r"}.StoredKey("closed", []byte("k"))); after != before {
			t.Error("a closed store has counted")
		}
	}
}

func perHour(rule string, n int64) core.Rule {
	return core.Rule{Name: rule, Limits: []core.Limit{{Quota: n, Window: time.Hour, Algorithm: core.FixedWindow}}}
}

// A flood of one denied key costs Redis about a command a second.
func TestAFloodOfDeniedRequestsCostsFewCommands(t *testing.T) {
	server := redistest.Start(t)
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	store := redisstore.New(newClient(t, server.Addr), redisstore.Clock(clock.Now), redisstore.Timeout(patience))
	limiter := core.Must(core.New(core.Config{Name: "api", Rules: []core.Rule{perHour("user", 1)}, Store: store}))
	hit := core.Hit{Rule: "user", Key: "alice"}
	_, _ = limiter.Take(t.Context(), 1, hit)
	server.MustDo("config", "resetstat")
	for range 10_000 { // in ten seconds
		if d, err := limiter.Take(t.Context(), 1, hit); err != nil || d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
		clock.Advance(time.Millisecond)
	}
	if n := commands(t, server, "evalsha"); n < 9 || n > 12 {
		t.Errorf("10,000 denied requests in ten seconds cost %d commands, want about 10", n)
	}
}

func commands(t *testing.T, server *redistest.Server, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(core.Must(newClient(t, server.Addr).Info(t.Context(), "commandstats").Result())) {
		if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d", &n); err == nil {
			return n
		}
	}
	return 0
}

func TestScan(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.MustDo("SET", "x", "of another program")
	single := redis.NewClient(&redis.Options{Addr: server.Addr})
	single.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if args := cmd.Args(); cmd.Name() == "scan" && args[1] == uint64(0) {
			args[5] = 1 // so that the first answer is mostly empty
		}
		return next(ctx, cmd)
	}))
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 3).Addrs()})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	for name, client := range map[string]redis.UniversalClient{"single": single, "cluster": cluster, "ring": ring} {
		t.Run(name, func(t *testing.T) {
			defer client.Close() //nolint:errcheck // the test is over
			store := redisstore.New(client, redisstore.Timeout(5*time.Second))
			limits := []core.Limit{{Quota: 100, Window: time.Hour}, {Quota: 50, Window: time.Minute}}
			rules := []core.Rule{{Name: "a", Limits: limits}, {Name: "ab", Limits: limits[:1]}}
			limiter := core.Must(core.New(core.Config{Name: "scanned", Store: store, Rules: rules}))
			other := core.Must(core.New(core.Config{Name: "scanned-2", Store: store, Rules: rules[:1]}))
			const keys = 700 // more than one step
			for i := range keys {
				if _, err := limiter.Take(t.Context(), int64(1+i%40), core.Hit{Rule: "a", Key: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			for rule, l := range map[string]*core.Limiter{"ab": limiter, "a": other} {
				if _, err := l.Take(t.Context(), 7, core.Hit{Rule: rule, Key: "k"}); err != nil {
					t.Fatal(err)
				}
			}
			named := func(limiter, rule, key string) string {
				return core.StoreRule{Name: rule}.StoredKey(limiter, []byte(key+"\x00"))
			}
			want := map[string]map[string]int64{
				"scanned": {named("scanned", "ab", "k"): 7}, "scanned-2": {named("scanned-2", "a", "k"): 7},
			}
			for i := range keys {
				want["scanned"][named("scanned", "a", fmt.Sprint(i))] = int64(1 + i%40)
			}
			stored := []core.StoreRule{{Name: "a", Limits: limits}, {Name: "ab", Limits: limits[:1]}}
			server.MustDo("config", "resetstat")
			for _, of := range []string{"scanned", "scanned", "scanned-2"} { // the first changes nothing
				found := map[string]int64{}
				if err := store.Scan(t.Context(), of, stored, func(s redisstore.Stored) error {
					found[s.Name] = 100 - s.Results[0].Remaining
					if s.Rule == "a" && s.Results[1].Remaining != s.Results[0].Remaining-50 ||
						!strings.HasPrefix(s.Name, "fg1:"+of+":"+s.Rule+":") {
						t.Errorf("rule %q, %s: %+v", s.Rule, s.Name, s.Results)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(found, want[of]) {
					t.Errorf("%s: found %v, want %v", of, found, want[of])
				}
			}
			// A script for many counters holds up the other clients.
			if n := commands(t, server, "evalsha"); name == "single" && n < 2*keys/16 {
				t.Errorf("%d scripts for %d counters, want at most 16 counters each", n, 2*keys)
			}
			stop := errors.New("stop")
			if err := store.Scan(t.Context(), "scanned", stored, func(redisstore.Stored) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("an error of the caller: %v", err)
			}
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	const nobody = "127.0.0.1:1"
	slots := func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: redistest.Slots - 1, Nodes: []redis.ClusterNode{{Addr: nobody}}}}, nil
	}
	for _, client := range []redis.UniversalClient{
		redis.NewClient(&redis.Options{Addr: nobody, DialerRetries: 1, PoolSize: 99}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nobody}, DialerRetries: 1, PoolSize: 99}),
		redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: slots, DialerRetries: 1, PoolSize: 99}),
		redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": nobody}, DialerRetries: 1, PoolSize: 99, HeartbeatFrequency: time.Hour}),
	} {
		store := redisstore.New(client, redisstore.Timeout(200*time.Millisecond))
		var scanned, acquired *redisstore.Error
		err := store.Scan(t.Context(), "a", hourly, func(redisstore.Stored) error { return nil })
		held, ok, none := store.AcquireSlot(t.Context(), "a", inflight.Slot{Key: "k"}, 1, time.Second)
		if held != 0 || ok || !errors.As(err, &scanned) || scanned.Unknown || !errors.As(none, &acquired) || !acquired.Unknown {
			t.Errorf("Scan: %v; AcquireSlot: %v", err, none)
		}
		slots := []inflight.Slot{{Key: "k"}}
		for _, err := range []error{store.RenewSlots(t.Context(), "a", slots, time.Second), store.ReleaseSlots(t.Context(), "a", slots)} {
			if !errors.As(err, &acquired) || !acquired.Unknown {
				t.Errorf("a slot: %v", err)
			}
		}
		b := bind(t, client, hourly, redisstore.Timeout(200*time.Millisecond))
		for _, op := range []core.Op{core.OpTake, core.OpPeek, core.OpCharge, core.OpGrant, core.OpRefund, core.OpBlock, core.OpReset, core.OpResetAll} {
			if err := storetest.Do(t.Context(), b, op, one("k", 1, 1)); !errors.As(err, &scanned) || scanned.Unknown {
				t.Errorf("%v: %v", op, err)
			}
		}
		if err := b.Do(t.Context(), new(core.Batch)); !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("an operation that the store does not have: %v", err)
		}
		_ = client.Close()
	}
}
