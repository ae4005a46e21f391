package redisstore_test

import (
	"context"
	"errors"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// stacks keeps the stack of each command.
type stacks struct {
	mu  sync.Mutex
	all []string
}

func (*stacks) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*stacks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *stacks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.mu.Lock()
			s.all = append(s.all, string(debug.Stack()))
			s.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// noCredentials are those of a server without passwords.
type noCredentials struct{}

func (noCredentials) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return auth.NewBasicCredentials("", ""), func() error { return nil }, nil
}

// noLimiter is a circuit breaker of the client's that never opens.
type noLimiter struct{}

func (noLimiter) Allow() error { return nil }

func (noLimiter) ReportResult(error) {}

// A decision alone waits on its caller's goroutine if the client keeps deadlines, as
// one of NewClient does, and on another one if anything in the client might not.
func TestADecisionAloneIsSentByItsCaller(t *testing.T) {
	addr := redistest.Start(t).Addr
	client := func(change func(*redis.Options)) redis.UniversalClient {
		o := &redis.Options{Addr: addr, ContextTimeoutEnabled: true}
		change(o)
		return redis.NewClient(o)
	}
	for name, c := range map[string]struct {
		client redis.UniversalClient
		here   bool
	}{
		"NewClient":            {core.Must(redisstore.NewClient("redis://" + addr)), true},
		"wanted":               {client(func(*redis.Options) {}), true},
		"not wanted":           {client(func(o *redis.Options) { o.ContextTimeoutEnabled = false }), false},
		"never times out":      {client(func(o *redis.Options) { o.ReadTimeout = -1 }), true},
		"no deadlines":         {client(func(o *redis.Options) { o.ReadTimeout = -2 }), false},
		"no write deadlines":   {client(func(o *redis.Options) { o.WriteTimeout = -2 }), false},
		"OnConnect":            {client(func(o *redis.Options) { o.OnConnect = func(context.Context, *redis.Conn) error { return nil } }), false},
		"credentials provider": {client(func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return "", "" } }), false},
		"with a context": {client(func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "", "", nil }
		}), false},
		"that stream": {client(func(o *redis.Options) { o.StreamingCredentialsProvider = noCredentials{} }), false},
		"limiter":     {client(func(o *redis.Options) { o.Limiter = noLimiter{} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.client.Close() //nolint:errcheck // the test is over
			b := bind(t, c.client, hourly, redisstore.Timeout(patience))
			take(t, b, "k")
			s := new(stacks)
			c.client.AddHook(s)
			take(t, b, "k")
			if len(s.all) != 1 || strings.Contains(s.all[0], "TestADecisionAloneIsSentByItsCaller") != c.here {
				t.Errorf("%d commands, on the caller's goroutine want %v:\n%s", len(s.all), c.here, s.all)
			}
		})
	}
}

// Whatever a client that keeps deadlines waits for, the store's deadline ends it, on
// the caller's goroutine, and the error tells whether anything was sent.
func TestTheDeadlineEndsADecisionOnItsCallersGoroutine(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and never says a word
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // the test is over
	end := make(chan struct{})
	defer close(end)
	for name, c := range map[string]struct {
		options redis.Options
		prepare func(*redis.Client)
	}{
		"a server that does not answer": {redis.Options{Addr: silent.Addr().String()}, nil},
		"a dialer that never returns": {redis.Options{Addr: "nowhere", Dialer: func(context.Context, string, string) (net.Conn, error) {
			<-end
			return nil, errRefused
		}}, nil},
		"a full pool": {redis.Options{Addr: server.Addr, PoolSize: 1, PoolTimeout: time.Hour}, func(client *redis.Client) {
			client.Ping(context.Background())
			go client.BLPop(context.Background(), 0, "never")
			processtest.WaitFor(t, "the connection to be taken", func() bool { return client.PoolStats().IdleConns == 0 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.ContextTimeoutEnabled, c.options.ReadTimeout = true, -1
			client := redis.NewClient(&c.options)
			defer client.Close() //nolint:errcheck // the test is over
			if c.prepare != nil {
				c.prepare(client)
			}
			s := new(stacks)
			client.AddHook(s)
			err := storetest.Do(t.Context(), bind(t, client, hourly, redisstore.Timeout(100*time.Millisecond)), core.OpTake, one("k", 1, 1))
			var e *redisstore.Error
			if !errors.As(err, &e) || e.Class != redisstore.ClassTimedOut || e.Unknown {
				t.Errorf("error %v, want a timeout of a command that was not sent", err)
			}
			if len(s.all) != 1 || !strings.Contains(s.all[0], "TestTheDeadlineEndsADecision") {
				t.Errorf("sent on another goroutine:\n%s", s.all)
			}
		})
	}
}

// A caller who has hung up before its decision was sent on its own goroutine is told
// what was decided.
func TestACallerWhoHasHungUpMayHearTheDecision(t *testing.T) {
	client := core.Must(redisstore.NewClient("redis://" + redistest.Start(t).Addr))
	defer client.Close() //nolint:errcheck // the test is over
	b := bind(t, client, hourly, redisstore.Timeout(patience))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	batch := one("k", 1, 1)
	if err := storetest.Do(ctx, b, core.OpTake, batch); err != nil || !batch.Allowed {
		t.Errorf("allowed %v, error %v", batch.Allowed, err)
	}
	if got := charged(t, b, "k"); got != 1 {
		t.Errorf("%d charged", got)
	}
}
