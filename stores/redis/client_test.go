package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
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

// Whatever the client waits for, the store's deadline ends the decision, and the
// error tells whether anything was sent.
func TestTheDeadlineEndsALoneDecision(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	silent := core.Must(net.Listen("tcp", "127.0.0.1:0")) // connects, and never says a word
	defer silent.Close()                                  //nolint:errcheck // the test is over
	end := make(chan struct{})
	defer close(end)
	var stuck atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if stuck.Load() || addr == "nowhere" { // whatever the context does
			<-end
			return nil, errRefused
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	warm := func(t *testing.T, b core.Counters) { // the last decision is made on its caller's goroutine
		for range 3 {
			processtest.WaitFor(t, "a decision", func() bool { return storetest.Do(t.Context(), b, core.OpPeek, one("k", 1, 1)) == nil })
		}
	}
	occupy := func(t *testing.T, client *redis.Client, b core.Counters) { // the only connection
		warm(t, b)
		go client.BLPop(context.Background(), 0, t.Name())
		processtest.WaitFor(t, "the connection to be taken", func() bool { return client.PoolStats().IdleConns == 0 })
	}
	for name, c := range map[string]struct {
		options redis.Options
		prepare func(t *testing.T, client *redis.Client, b core.Counters)
		sent    bool
		charged int64 // afterwards
	}{
		"a server that does not answer a new client": {options: redis.Options{Addr: silent.Addr().String()}},
		"a dialer that never returns":                {options: redis.Options{Addr: "nowhere", Dialer: dial}},
		"the second connection's dialer": {options: redis.Options{Addr: server.Addr, PoolSize: 2, Dialer: dial}, prepare: func(t *testing.T, client *redis.Client, b core.Counters) {
			warm(t, b) // a slow machine may need several connections for it
			stuck.Store(true)
			occupy(t, client, b)
		}},
		"a full pool": {options: redis.Options{Addr: server.Addr, PoolSize: 1, PoolTimeout: time.Hour}, prepare: occupy},
		"a reply that does not come": {options: redis.Options{Addr: proxy.Addr}, sent: true, charged: 1, prepare: func(t *testing.T, _ *redis.Client, b core.Counters) {
			warm(t, b)
			proxy.Fail(faultproxy.Swallow, -1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.ReadTimeout, c.options.ContextTimeoutEnabled = -1, true
			client := redis.NewClient(&c.options)
			defer client.Close() //nolint:errcheck // the test is over
			b := bind(t, client, hourly, redisstore.Timeout(100*time.Millisecond))
			if c.prepare != nil {
				c.prepare(t, client, b)
			}
			err := storetest.Do(t.Context(), b, core.OpTake, one("k", 1, 1))
			var e *redisstore.Error
			if !errors.As(err, &e) || !errors.Is(err, context.DeadlineExceeded) || e.Unknown != c.sent {
				t.Errorf("error %v, want a timeout; sent: %v", err, c.sent)
			}
			newClient(t, server.Addr).RPush(context.Background(), t.Name(), 1) // the connection is free again
			if got := charged(t, bind(t, newClient(t, server.Addr), hourly, redisstore.Timeout(patience)), "k"); got != c.charged {
				t.Errorf("%d charged, want %d", got, c.charged)
			}
		})
	}
}

// A server may be as far away as a quarter of the Timeout: new connections are made and the script is
// loaded in time.
func TestADistantServer(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Start(t).Addr)
	proxy.Delay(80 * time.Millisecond)
	for name, options := range map[string]*redis.Options{
		"README's":              {Addr: proxy.Addr},
		"ContextTimeoutEnabled": {Addr: proxy.Addr, ContextTimeoutEnabled: true},
	} {
		client := redis.NewClient(options)
		b := bind(t, client, hourly, redisstore.Timeout(4*80*time.Millisecond))
		processtest.WaitFor(t, name+": a decision", func() bool { return storetest.Do(t.Context(), b, core.OpPeek, one("k", 1, 1)) == nil })
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The hooks of the application's client see each decision as one command, which go-redis must not repeat.
func TestTheClientsHooksSeeEveryDecision(t *testing.T) {
	clients(t, func(t *testing.T, client redis.UniversalClient, _ *faultproxy.Proxy, _ *redistest.Server) {
		var commands, repeatable atomic.Int64
		client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			commands.Add(1)
			if !cmd.NoRetry() && strings.HasPrefix(cmd.Name(), "eval") { // not those that set up a connection
				repeatable.Add(1)
			}
			return next(ctx, cmd)
		}))
		store := redisstore.New(client, redisstore.Timeout(patience), redisstore.WithoutDenialCache())
		limiter := core.Must(core.New(core.Config{Name: "l", Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(100)}}}}))
		for range 2 { // with EVAL, too: a server is new
			if _, err := limiter.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		before := commands.Load()
		for range 10 {
			if _, err := limiter.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil {
				t.Fatal(err)
			}
		}
		if n := commands.Load() - before; n != 10 || before == 0 {
			t.Errorf("the hook saw %d commands of 10 decisions, %d before", n, before)
		}
		if n := repeatable.Load(); n != 0 {
			t.Errorf("the client may repeat %d of %d commands", n, commands.Load())
		}
	})
}

// shifted is a connection on which another reply comes before that of the first call of a script.
type shifted struct {
	net.Conn
	other []byte
}

func (s *shifted) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) {
		s.other = []byte("+z 1\r\n") // of another slot
	}
	return s.Conn.Write(b)
}

func (s *shifted) Read(b []byte) (n int, err error) {
	if n = copy(b, s.other); n > 0 {
		s.other = s.other[n:]
		return n, nil
	}
	return s.Conn.Read(b)
}

// If the replies of a connection are shifted, nobody gets the reply to another command. The connection is soon closed.
func TestShiftedRepliesAreErrorsAndEnd(t *testing.T) {
	addr := redistest.Start(t).Addr
	for name, do := range map[string]func(s *redisstore.Store, b core.Counters) error{
		"a take": func(_ *redisstore.Store, b core.Counters) error {
			return storetest.Do(context.Background(), b, core.OpTake, one("k", 1, 1))
		},
		"a slot": func(s *redisstore.Store, _ core.Counters) error {
			_, _, err := s.AcquireSlot(context.Background(), "l", inflight.Slot{Key: "k", ID: 1}, 1, time.Minute)
			return err
		},
	} {
		var dialed atomic.Bool
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if !dialed.Swap(true) {
				conn = &shifted{Conn: conn}
			}
			return conn, err
		}})
		s := redisstore.New(client, redisstore.Timeout(patience), redisstore.AnotherInstance())
		b := core.Must(s.Open("shifted", hourly))
		var e *redisstore.Error
		if err := do(s, b); !errors.As(err, &e) || !strings.Contains(err.Error(), "the reply") || !e.Unknown {
			t.Errorf("%s: error %v", name, err)
		}
		for range 2 * map[string]int{"a take": 1}[name] {
			if err := storetest.Do(context.Background(), b, core.OpTake, one("k", 1, 1)); err != nil {
				t.Errorf("%s: the connection was used again: %v", name, err)
			}
		}
		_ = client.Close()
	}
}

// A panic of a hook fails the decisions of its command. It ends neither the process nor the
// decisions that come later.
func TestAPanicOfAHookFailsTheDecisionsOfItsCommand(t *testing.T) {
	clients(t, func(t *testing.T, client redis.UniversalClient, _ *faultproxy.Proxy, _ *redistest.Server) {
		var before, after atomic.Bool
		client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
			decides := strings.HasPrefix(cmd.Name(), "eval") // others set up a connection
			if decides && before.Load() {
				panic("before the command")
			}
			err := next(ctx, cmd)
			if decides && after.Load() {
				panic("after the command")
			}
			return err
		}))
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		bound := bind(t, client, hourly, redisstore.Timeout(patience), redisstore.Log(log))
		take(t, bound, "before")
		const callers = 20
		for _, c := range []struct {
			panics  *atomic.Bool
			charged int64
			text    string
		}{{&before, 0, "before the command"}, {&after, 1, "after the command"}} {
			unknown := c.charged > 0
			c.panics.Store(true)
			var wg sync.WaitGroup
			errs := make([]error, callers)
			for i := range callers {
				wg.Go(func() {
					errs[i] = storetest.Do(context.Background(), bound, core.OpTake, one(fmt.Sprint(c.charged, i), 1, 1))
				})
			}
			wg.Wait()
			slots := redisstore.New(client, redisstore.Timeout(patience), redisstore.Log(slog.New(slog.DiscardHandler)))
			if _, _, err := slots.AcquireSlot(t.Context(), "l", inflight.Slot{Key: "k", ID: 1}, 1, time.Minute); !of("the client panicked: "+c.text, true)(err) {
				t.Errorf("a slot: error %v", err)
			}
			c.panics.Store(false)
			for i, err := range errs {
				var e *redisstore.Error
				if !errors.As(err, &e) || e.Unknown != unknown || !strings.HasSuffix(err.Error(), "the client panicked: "+c.text) {
					t.Fatalf("caller %d: error %v, want a panic %s, and unknown %t", i, err, c.text, unknown)
				}
				if errors.Is(err, core.ErrNotCharged) == unknown {
					t.Fatalf("caller %d: error %v is wrong about the charge", i, err)
				}
				if got := charged(t, bound, fmt.Sprint(c.charged, i)); got != c.charged {
					t.Fatalf("caller %d: %d hits are charged, want %d", i, got, c.charged)
				}
			}
		}
		if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "before the command") || !strings.Contains(text, "ProcessHook") || !strings.Contains(text, "more=0") {
			t.Errorf("logged %q, want one line with the stack", text)
		}
	})
}

// A caller who hangs up before the answer has come, or whose own deadline passes, does not wait. Its
// take is charged all the same.
func TestACanceledTake(t *testing.T) {
	server := redistest.Start(t)
	client := newClient(t, server.Addr)
	deadlines := core.Must(redisstore.NewClient("redis://" + server.Addr))
	defer deadlines.Close() //nolint:errcheck // the test is over
	gone := errors.New("gone")
	canceled := func(cause error) func() context.Context {
		return func() context.Context {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			return ctx
		}
	}
	for name, c := range map[string]struct {
		client redis.UniversalClient
		ctx    func() context.Context
		cause  error
	}{
		"one key":       {client, canceled(context.Canceled), context.Canceled},
		"another cause": {client, canceled(gone), gone},
		"a client that keeps deadlines": {deadlines, func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			b := bind(t, c.client, hourly, redisstore.Timeout(patience))
			take(t, b, "a")
			server.MustDo("CLIENT", "PAUSE", "20000", "WRITE") // scripts too
			err := storetest.Do(c.ctx(), b, core.OpTake, one("a", 1, 1))
			server.MustDo("CLIENT", "UNPAUSE")
			var e *redisstore.Error
			if !errors.As(err, &e) || !e.Unknown || !errors.Is(err, c.cause) {
				t.Errorf("error %v, want one that has the cause and says that the take may have been charged", err)
			}
			processtest.WaitFor(t, "the charge", func() bool { return charged(t, b, "a") == 2 })
		})
	}
}

// For a proxy that shards by key, and for a Ring, a command never has two keys,
// whoever else decides at the same time.
func TestAClientThatShardsByKeyGetsCommandsWithOneKey(t *testing.T) {
	addr := redistest.Start(t).Addr
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]redis.UniversalClient{"proxy": newClient(t, addr), "Ring": ring} {
		t.Run(name, func(t *testing.T) {
			opts := []redisstore.Option{redisstore.Timeout(patience)}
			if name == "proxy" {
				opts = append(opts, redisstore.ShardedByKey())
			}
			var all, crowded atomic.Int64
			client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
				if cmd.Name() == "evalsha" {
					if all.Add(1); cmd.Args()[2].(int) > 1 {
						crowded.Add(1)
					}
				}
				return next(ctx, cmd)
			}))
			b := bind(t, client, hourly, opts...)
			together(100, func(i int) {
				// One is there twice: keys of one slot may be on several servers.
				batch := several([]string{fmt.Sprint(i), fmt.Sprint("other", i), fmt.Sprint(i)})
				if err := storetest.Do(context.Background(), b, core.OpTake, batch); err != nil || !batch.Allowed {
					t.Errorf("allowed %v, error %v", batch.Allowed, err)
				}
				take(t, b, "same")
			})
			if n := crowded.Load(); n > 0 || all.Load() == 0 {
				t.Errorf("%d of %d commands have several keys", n, all.Load())
			}
			if redisstore.New(client, opts...).Guarantees().OneStep {
				t.Error("the store promises to decide on several keys in one step")
			}
		})
	}
}

// On a cluster, only decisions on keys of one slot share a command. A decision on several is one step.
func TestOnAClusterCommandsHaveKeysOfOneSlot(t *testing.T) {
	t.Parallel()
	cluster, client := newCluster(t)
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	var all, crossing atomic.Int64
	client.AddHook(onCommand(func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if cmd.Name() == "evalsha" {
			all.Add(1)
		}
		if redis.HasErrorPrefix(err, "CROSSSLOT") {
			crossing.Add(1)
		}
		return err
	}))
	const callers = 200
	together(callers, func(i int) {
		take(t, b, fmt.Sprint(i))
		take(t, b, "same")
	})
	if n := crossing.Load(); n > 0 || all.Load() >= 2*callers {
		t.Errorf("%d of %d commands of %d decisions have keys of several slots", n, all.Load(), 2*callers)
	}
	keys, _ := keysOfOneSlot(t, cluster)
	all.Store(0)
	if err := storetest.Do(t.Context(), b, core.OpTake, several(keys)); err != nil || all.Load() != 1 {
		t.Errorf("two keys of one slot: %d commands, %v", all.Load(), err)
	}
}
