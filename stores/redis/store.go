package redisstore

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
	"github.com/floodgate-go/floodgate/stores/internal/names"
)

// Client is what the store needs of a go-redis client. *redis.Client (also that
// of redis.NewFailoverClient), *redis.ClusterClient, *redis.Ring and
// redis.UniversalClient have it, and so has the *redis.AutoPipeliner of newer
// versions. The application makes the client and closes it.
type Client interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Store is a [core.Store] that counts in Redis. It is made by [New]. Its
// methods, and those of what Bind returns, may be called concurrently.
type Store struct {
	client  Client
	options options
	cached  *denycache.Store // around direct; nil: none
	layout  atomic.Uint32    // which keys may stand in one command
	exempts bool             // the client is told by exempt what not to repeat
	unasked bool             // and never asks once, which it writes more often than it sends it
	nonces  atomic.Uint64
	running chan struct{} // one element for each command under way
	reports reports
	names   *names.Owner
	gate    *closing.Gate
}

var _ core.Store = (*Store)(nil)

// Which keys may stand in one command.
const (
	anyKeys = iota // all: one server has everything
	oneSlot        // those of one hash slot: a cluster
	eachKey        // none but itself: a client that shards by key
)

// maxRunning is the most commands under way at a time. Those that wait in the
// client for a connection count too, so that it is well above any pool. It
// bounds what a server that does not answer can make pile up.
const maxRunning = 8192

// New returns a store that counts in the Redis of the client, and whose
// operations fail while that Redis does not answer: a limiter then answers 503,
// unless package github.com/floodgate-go/floodgate/stores/resilient is around the
// store, which then decides in the process, or lets all requests through, or none.
//
// An option that cannot work is reported by Bind, which core.New calls: so that
// New can stand in a composite literal. So is the name of a limiter for which
// another Store of this process counts on the same server: see [AnotherInstance].
func New(client Client, opts ...Option) *Store {
	s := &Store{
		client:  client,
		options: options{timeout: DefaultTimeout, slackMillis: int64(1000)},
		running: make(chan struct{}, maxRunning),
		gate:    closing.New("redis"),
	}
	s.nonces.Store(rand.Uint64())
	for _, opt := range opts {
		opt(&s.options)
	}
	s.names = names.New(serverOf(client), s.options.apart)
	runtime.AddCleanup(s, (*names.Owner).Release, s.names)
	switch c := client.(type) {
	case *redis.Client:
		switch {
		case c == nil: // check says so
		case clonesKeepHooks():
			s.client = inTime(c, s.options.timeout)
		default:
			s.exempts = knowsExempt()
		}
	case *redis.ClusterClient:
		s.layout.Store(oneSlot)
	case *redis.Ring:
		s.layout.Store(eachKey)
	default:
		s.exempts = knowsExempt()
		s.unasked = s.exempts
	}
	if !s.options.askAlways {
		s.cached = core.Must(denycache.New(direct{s}, denycache.Config{Clock: s.options.clock}))
	}
	return s
}

// inTime returns a client on the same connections and with the same hooks, that
// gives up when a command's context ends and leaves it to the store what is sent
// again. Where a later version of go-redis would not let itself be told, the
// store's own deadline and the once in every command still hold.
func inTime(c *redis.Client, timeout time.Duration) *redis.Client {
	c = c.WithTimeout(timeout)
	o := c.Options() // the clone's own
	o.ContextTimeoutEnabled, o.MaxRetries = true, 0
	return c
}

// clonesKeepHooks says that a client's clone calls the hooks that have been added
// to it. In newer versions of go-redis (9.23 is one) it does not: an
// application's tracing would see nothing of the store, which therefore uses the
// client itself there.
var clonesKeepHooks = sync.OnceValue(func() bool {
	c := redis.NewClient(&redis.Options{})
	defer c.Close() //nolint:errcheck // nothing was connected
	var seen probe
	c.AddHook(&seen)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // before anything is dialled
	_ = c.WithTimeout(time.Second).Process(ctx, redis.NewCmd(ctx, "ping"))
	return bool(seen)
})

// probe is a hook that notes that it is called, and goes no further.
type probe bool

func (p *probe) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p *probe) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		*p = true
		return ctx.Err()
	}
}

func (p *probe) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if err := s.gate.Err(); err != nil {
		return nil, err
	}
	var inner core.Store = direct{s}
	if s.cached != nil {
		inner = s.cached
	}
	b, err := inner.Bind(limiter, rules)
	if err != nil {
		return nil, err
	}
	return s.gate.Bind(b), nil
}

// direct is the Store without the denial cache.
type direct struct{ s *Store }

func (d direct) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	s := d.s
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.names.Claim(limiter); err != nil {
		return nil, err
	}
	return newBound(s, limiter, rules), nil
}

// Ping asks the server, with the rights and within the deadline of any other
// operation, whether it runs scripts. A program that wants to know at its start
// that the store works calls it then; nothing else does.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.gate.Err(); err != nil {
		return err
	}
	c := s.call(verbPeek, nil)
	_, err := s.do(s.begin(ctx), c, nil)
	return err
}

// now returns the time that a command carries: the application's, or none.
func (s *Store) now() any {
	if s.options.clock == nil {
		return serverTime
	}
	return s.options.clock().UnixMicro()
}

// operation is one call of a method: what it may wait for.
type operation struct {
	ctx context.Context // the caller's
	end time.Time       // of the store's own deadline
}

func (s *Store) begin(ctx context.Context) operation {
	return operation{ctx, time.Now().Add(s.options.timeout)}
}
