package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/names"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
	"github.com/floodgate-go/floodgate/stores/redis/internal/joining"
)

// Store is a [core.Store] that counts in Redis. It is made by [New]. Its methods, and those of the
// Counters that Open returns, may be called concurrently.
type Store struct {
	client   redis.UniversalClient
	usable   bool // the client is of a kind that the store knows, and not nil
	inTime   bool // the client ends each command by the deadline of its context
	options  options
	counting core.Store    // direct, or a denial cache around it
	layout   atomic.Uint32 // which keys may be in one command
	nonces   atomic.Uint64
	whole    *joining.Line[*call] // of the calls if all keys are on one server
	alone    *joining.Line[*call] // of calls that share no command
	slots    sync.Map             // of a cluster: the *joining.Line[*call] of each hash slot
	patience time.Duration        // how long a call waits for the commands before it

	unreadable, panics, clocks reports

	names *names.Owner
	gate  *closing.Gate
}

var _ core.Store = (*Store)(nil)

// Which keys may be in one command.
const (
	anyKeys = iota // all: one server has everything
	oneSlot        // those of one hash slot: a cluster
	eachKey        // each key alone: a client that shards by key
)

// New returns a store that counts in the Redis of the client: a *[redis.Client], also that of
// [redis.NewFailoverClient], a *[redis.ClusterClient] or a *[redis.Ring]. The application makes the
// client and closes it. An operation fails if that Redis does not answer: a limiter then answers
// 503. To decide in the process instead, or to allow all requests, put package
// github.com/floodgate-go/floodgate/stores/resilient around the store.
//
// Set ContextTimeoutEnabled: a decision that shares its command with no other then runs on its
// caller's goroutine. This is faster, but a hook of the client that blocks delays it. Such a
// decision, and one with keys of several slots, do not end earlier if their context is canceled.
// Set DialerRetries to 1, as [NewClient] does: if nothing listens at the address, go-redis dials
// five times by default, which takes longer than the Timeout.
//
// Open, which core.New calls, returns the errors of New's arguments, so that New can be used in a
// composite literal. It also returns an error if another Store of this process counts for a limiter
// of the same name at the same address, or with the same client of a cluster, a ring or Sentinels:
// see [AnotherInstance].
func New(client redis.UniversalClient, opts ...Option) *Store {
	s := &Store{
		client:  client,
		options: options{timeout: DefaultTimeout, slackMillis: 1000},
		gate:    closing.New("redis"),
	}
	s.nonces.Store(rand.Uint64())
	for _, opt := range opts {
		if opt != nil {
			opt(&s.options)
		}
	}
	s.patience = min(longestPatience, s.options.timeout/8)
	s.whole = s.newLine(mostCalls, 0, mostStuck)
	s.alone = s.newLine(1, mostAlone, 0)
	s.names = names.New(serverOf(client), s.options.apart)
	runtime.AddCleanup(s, (*names.Owner).Release, s.names)
	switch c := client.(type) {
	case *redis.Client:
		s.usable = c != nil
		s.inTime = s.usable && keepsDeadlines(c.Options())
	case *redis.ClusterClient:
		s.usable = c != nil
		s.layout.Store(oneSlot)
	case *redis.Ring:
		s.usable = c != nil
		s.layout.Store(eachKey)
	}
	if s.options.shardedByKey {
		s.layout.Store(eachKey)
	}
	s.counting = direct{s}
	if !s.options.askAlways {
		s.counting = core.Must(denycache.New(direct{s}, denycache.Config{Clock: s.options.clock}))
	}
	return s
}

// keepsDeadlines reports whether a client ends each command by the deadline of its context. The
// application's functions that a client calls may ignore deadlines.
func keepsDeadlines(o *redis.Options) bool {
	return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0 && o.Addr != failoverAddr && o.Limiter == nil && o.OnConnect == nil &&
		o.CredentialsProvider == nil && o.CredentialsProviderContext == nil && o.StreamingCredentialsProvider == nil
}

// failoverAddr is the address of a client of redis.NewFailoverClient.
const failoverAddr = "FailoverClient"

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := s.ready(); err != nil {
		return nil, err
	}
	b, err := s.counting.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	return s.gate.Open(b), nil
}

// Guarantees implements [core.Store]. OneStep is false for a client that spreads keys over several
// servers, and after a server or proxy has rejected a command because its keys are in several hash
// slots.
func (s *Store) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: s.layout.Load() == anyKeys, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}
}

// direct is the Store without the denial cache.
type direct struct{ *Store }

// Open implements [core.Store].
func (d direct) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := d.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	return newCounters(d.Store, limiter, rules), nil
}

// Ping checks that the server runs the store's script within the Timeout. A program may call it at
// its start; nothing else does.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(); err != nil {
		return err
	}
	_, err := s.do(s.begin(ctx), verbPeek, nil)
	return err
}

// DefaultTimeout is the deadline of an operation without [Timeout].
const DefaultTimeout = 100 * time.Millisecond

// Option changes the store that [New] makes.
type Option func(*options)

type options struct {
	timeout      time.Duration
	clock        func() time.Time
	slackMillis  uint32 // how much longer than needed a state is kept
	askAlways    bool
	apart        bool
	shardedByKey bool
	log          *slog.Logger
}

// Timeout sets how long an operation may take: 1 ms or more. This includes waiting for a connection
// and repeating a command that did not run. It holds whatever the client's own timeouts and retries
// are. Set it to four round trips to the server or more: a new connection and the script must be
// ready in time.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Clock makes the application's clock decide, instead of that of the Redis server. It is for
// servers whose clock cannot be trusted, and for tests. All processes that share the counters must
// have it, or none, and their clocks must differ by less than the shortest window, or limits do not
// hold: docs/concepts/algorithms.md says what is guaranteed. To add or remove it, change the
// limiter's Name too. States are kept a minute longer than needed, because a clock may be late.
func Clock(now func() time.Time) Option {
	return func(o *options) { o.clock, o.slackMillis = now, 60_000 }
}

// WithoutDenialCache makes the store ask Redis about every request, even for a key that it has just
// denied. Without this option a denial is remembered in the process for at most a second, which
// delays a Reset by another process. See package
// github.com/floodgate-go/floodgate/stores/denycache.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Log sets where the store reports values that cannot be read, panics of the client's hooks, and
// clocks that differ by a window or more, each once a minute at most: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as another Store of this
// process. Without this option, Open returns an error, because two limiters that share their
// counters by accident deny each other's clients. It is for tests, benchmarks and tools that look
// into another program's counters.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

// ShardedByKey makes the store send each key in a command of its own, as it does for a
// [redis.Ring]. It is for a proxy before several servers that sends a command to the server of its
// first key, such as Envoy. For the slots of package inflight, the proxy must choose by the part of
// a key in braces only (Envoy: enable_hashtagging).
func ShardedByKey() Option { return func(o *options) { o.shardedByKey = true } }

// ready returns the errors of New's arguments, or that the store has been closed.
func (s *Store) ready() error {
	var client, timeout error
	if !s.usable {
		client = fmt.Errorf("%w: client: %T: must be a *redis.Client, *redis.ClusterClient or *redis.Ring that is not nil, such as redis.NewClient(&redis.Options{Addr: \"localhost:6379\"})", core.ErrConfig, s.client)
	}
	if s.options.timeout < time.Millisecond {
		timeout = fmt.Errorf("%w: Timeout: %v: must be 1ms or more", core.ErrConfig, s.options.timeout)
	}
	return errors.Join(client, timeout, s.gate.Err())
}

// Close releases the names of the limiters that the store counts for, so that another Store of this
// process can count for them. Every later call returns an error that wraps [core.ErrClosed];
// operations under way end normally. Close does not close the client, which is the application's.
// Closing again does nothing. Close never fails.
//
// A program that keeps its limiters for as long as it runs need not call Close. A Store that has
// become garbage releases its names eventually.
func (s *Store) Close() error {
	s.gate.Close()
	s.names.Release()
	return nil
}

// serverOf names the server of a client: by its address and database, if the client has one
// address. Any other client (of a cluster, a ring or Sentinels) is its own server.
func serverOf(client redis.UniversalClient) string {
	if c, _ := client.(*redis.Client); c != nil && c.Options().Addr != failoverAddr {
		return fmt.Sprintf("redis %s/%d", c.Options().Addr, c.Options().DB)
	}
	return fmt.Sprintf("the server of a %T (%[1]p)", client)
}
