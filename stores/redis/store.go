package redisstore

import (
	"context"
	"fmt"
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
)

// Store is a [core.Store] that counts in Redis. It is made by [New]. Its
// methods, and those of the Counters that Open returns, may be called
// concurrently.
type Store struct {
	client  Client
	options options
	cached  *denycache.Store // around direct; nil: none
	layout  atomic.Uint32    // which keys may be in one command
	gathers bool             // the client may write the commands of several callers together
	here    *punctual        // a decision alone waits for it on its caller's goroutine; nil: on another one
	nonces  atomic.Uint64
	ahead   atomic.Int64 // of this process's clock: the server's, in microseconds, as far as is known
	lines   lines
	// patience is how long a call waits for the exchanges before it.
	patience time.Duration
	reports  reports   // of values that cannot be read
	panics   reports   // of the client's panics
	clocks   sync.Once // says that clocks differ
	names    *names.Owner
	gate     *closing.Gate
}

var _ core.Store = (*Store)(nil)

// Which keys may be in one command.
const (
	anyKeys = iota // all: one server has everything
	oneSlot        // those of one hash slot: a cluster
	eachKey        // each key alone: a client that shards by key
)

// New returns a store that counts in the Redis of the client. An operation
// fails if that Redis does not answer: a limiter then answers 503. To decide in
// the process instead, or to allow all requests, put package
// github.com/floodgate-go/floodgate/stores/resilient around the store.
//
// Open, which core.New calls, returns the errors of options, so that New can be
// used in a composite literal. It also returns an error for the name of a
// limiter for which another Store of this process counts on the same server:
// see [AnotherInstance].
func New(client Client, opts ...Option) *Store {
	s := &Store{
		client:  client,
		options: options{timeout: DefaultTimeout, slackMillis: 1000},
		gate:    closing.New("redis"),
	}
	s.nonces.Store(rand.Uint64())
	for _, opt := range opts {
		if opt == nil {
			s.options.missing = true
			continue
		}
		opt(&s.options)
	}
	s.patience = min(longestPatience, s.options.timeout/8)
	s.lines.whole = s.newLine(mostCalls, 0, mostStuck)
	s.lines.alone = s.newLine(1, mostAlone, 0)
	s.names = names.New(serverOf(client), s.options.apart)
	runtime.AddCleanup(s, (*names.Owner).Release, s.names)
	switch c := client.(type) {
	case *redis.Client:
		s.here = punctualOf(c)
	case *redis.ClusterClient:
		s.layout.Store(oneSlot)
	case *redis.Ring:
		s.layout.Store(eachKey)
	default:
		// A *redis.AutoPipeliner, for example. If an argument could not be
		// serialised there, the commands of other callers would fail too.
		s.gathers = true
	}
	if s.options.shardedByKey {
		s.layout.Store(eachKey)
	}
	if !s.options.askAlways {
		s.cached = core.Must(denycache.New(direct{s}, denycache.Config{Clock: s.options.clock}))
	}
	return s
}

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := s.gate.Err(); err != nil {
		return nil, err
	}
	var inner core.Store = direct{s}
	if s.cached != nil {
		inner = s.cached
	}
	b, err := inner.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	return s.gate.Open(b), nil
}

// Guarantees implements [core.Store]. OneStep is false for a client that
// spreads keys over several servers, and from the moment a server or proxy has
// rejected a command because its keys are in several hash slots.
func (s *Store) Guarantees() core.Guarantees { return direct{s}.Guarantees() }

// direct is the Store without the denial cache.
type direct struct{ s *Store }

func (d direct) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	s := d.s
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	return newCounters(s, limiter, rules), nil
}

func (d direct) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps, Exact: true, OneStep: d.s.layout.Load() == anyKeys, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}
}

// Ping asks the server whether it runs scripts, with the rights and the
// deadline of any other operation. A program that wants to know at its start
// that the store works calls Ping; nothing else does.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.check(); err != nil {
		return err
	}
	if err := s.gate.Err(); err != nil {
		return err
	}
	_, err := s.do(s.begin(ctx), verbPeek, nil)
	return err
}

// now returns the time that a call carries: the application's time, or 0.
func (s *Store) now() int64 {
	if s.options.clock == nil {
		return 0
	}
	return s.options.clock().UnixMicro()
}

// operation is one call of a method, with the ends of its waiting.
type operation struct {
	ctx context.Context // the caller's
	end time.Time       // of the store's own deadline
}

func (s *Store) begin(ctx context.Context) operation {
	return operation{ctx, time.Now().Add(s.options.timeout)}
}
