package redisstore_test

import (
	"bytes"
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
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/processtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

// stacks keeps the stack of each call of the script, from where it is written to a connection.
type stacks struct {
	mu  sync.Mutex
	all []string
}

// dial is a dialer of a client.
func (s *stacks) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return written{conn, s}, err
}

type written struct {
	net.Conn
	stacks *stacks
}

func (w written) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) {
		w.stacks.mu.Lock()
		w.stacks.all = append(w.stacks.all, string(debug.Stack()))
		w.stacks.mu.Unlock()
	}
	return w.Conn.Write(b)
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

// A decision alone waits on its caller's goroutine if the client is like the README's, and on
// another one if anything in the client might not keep to a deadline.
func TestADecisionAloneIsSentByItsCaller(t *testing.T) {
	addr := redistest.Start(t).Addr
	for name, c := range map[string]struct {
		change func(*redis.Options)
		here   bool
	}{
		"the README's":         {func(*redis.Options) {}, true},
		"keeps deadlines":      {func(o *redis.Options) { o.ContextTimeoutEnabled = true }, true},
		"never times out":      {func(o *redis.Options) { o.ReadTimeout = -1 }, true},
		"no deadlines":         {func(o *redis.Options) { o.ReadTimeout = -2 }, true},
		"no write deadlines":   {func(o *redis.Options) { o.WriteTimeout = -2 }, true},
		"OnConnect":            {func(o *redis.Options) { o.OnConnect = func(context.Context, *redis.Conn) error { return nil } }, false},
		"credentials provider": {func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return "", "" } }, false},
		"with a context": {func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "", "", nil }
		}, false},
		"that stream": {func(o *redis.Options) { o.StreamingCredentialsProvider = noCredentials{} }, false},
		"limiter":     {func(o *redis.Options) { o.Limiter = noLimiter{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(stacks)
			o := &redis.Options{Addr: addr, Dialer: s.dial}
			c.change(o)
			client := redis.NewClient(o)
			defer client.Close() //nolint:errcheck // the test is over
			b := bind(t, client, hourly, redisstore.Timeout(patience))
			take(t, b, "k") // makes the connection
			s.all = nil
			take(t, b, "k")
			if len(s.all) != 1 || strings.Contains(s.all[0], "TestADecisionAloneIsSentByItsCaller") != c.here {
				t.Errorf("%d commands, on the caller's goroutine want %v:\n%s", len(s.all), c.here, s.all)
			}
		})
	}
}

// Whatever the README's client waits for, the store's deadline ends the decision, and the
// error tells whether anything was sent.
func TestTheDeadlineEndsALoneDecision(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
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
		sent    bool
	}{
		"a server that does not answer a new client": {options: redis.Options{Addr: silent.Addr().String()}},
		"a dialer that never returns": {options: redis.Options{Addr: "nowhere", Dialer: func(context.Context, string, string) (net.Conn, error) {
			<-end
			return nil, errRefused
		}}},
		"a full pool": {options: redis.Options{Addr: server.Addr, PoolSize: 1, PoolTimeout: time.Hour}, prepare: func(client *redis.Client) {
			client.Ping(context.Background())
			go client.BLPop(context.Background(), 0, "never")
			processtest.WaitFor(t, "the connection to be taken", func() bool { return client.PoolStats().IdleConns == 0 })
		}},
		"a reply that does not come": {options: redis.Options{Addr: proxy.Addr}, sent: true, prepare: func(client *redis.Client) {
			take(t, bind(t, client, hourly, redisstore.Timeout(patience)), "k")
			proxy.Fail(faultproxy.Swallow, -1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.ReadTimeout = -1
			client := redis.NewClient(&c.options)
			defer client.Close() //nolint:errcheck // the test is over
			if c.prepare != nil {
				c.prepare(client)
			}
			err := storetest.Do(t.Context(), bind(t, client, hourly, redisstore.Timeout(100*time.Millisecond)), core.OpTake, one("k", 1, 1))
			var e *redisstore.Error
			if !errors.As(err, &e) || e.Class != redisstore.ClassTimedOut || e.Unknown != c.sent {
				t.Errorf("error %v, want a timeout; sent: %v", err, c.sent)
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
	take(t, b, "other") // makes the connection
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
