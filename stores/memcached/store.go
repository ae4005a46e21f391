// Package memcachedstore counts in memcached: all instances of an application share one limit,
// exactly, by memcached's compare-and-swap.
//
//	store, err := memcachedstore.New([]string{"10.0.0.1:11211"})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: store})
//
// All limits of one key of one rule are one item. Its name, which [core.StoreRule.StoredKey]
// returns, has at most 156 bytes and shows nothing that a client sent. A charge reads the item and
// swaps it for its successor. If another instance has changed it in between, the charge is tried
// again within the [Timeout]. The keys of a decision are read together and swapped one by one; if a
// later one is denied, the earlier ones are refunded. If a process is killed between two of them,
// or a reply is lost, a charge may stay although the request failed. No charge is made twice.
//
// A value that this package has not written, or that is damaged, counts as none and is replaced by
// the next charge, or it denies its key for the shortest window of its rule: see [core.Config]. A
// value of a later version of this package denies its key until it expires.
//
// The application's clock decides, because memcached has none that can be asked:
// docs/concepts/algorithms.md says what is guaranteed if the clocks of instances differ. memcached
// keeps nothing for more than 30 days: a limit whose hits count for longer (core.Limit.Lifetime),
// such as a sliding window of more than 15 days, is a configuration error.
//
// A memcached that is restarted forgets everything, and a full one evicts items: give counters a
// server of their own, with enough memory (an item takes about 150 bytes). Several servers share
// the keys by a hash of the name modulo the number of servers: if the list changes, most keys move
// to another server, and start again at 0.
package memcachedstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/names"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// Option changes the store that [New] makes.
type Option func(*options)

type options struct {
	timeout   time.Duration
	clock     func() time.Time
	askAlways bool
	apart     bool
	log       *slog.Logger
}

// Timeout sets how long an operation with all attempts may take: 1 ms or more, 200 ms by default.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Clock sets the clock that decides, time.Now by default.
func Clock(now func() time.Time) Option { return func(o *options) { o.clock = now } }

// WithoutDenialCache makes the store ask memcached about every request. Without this option,
// package github.com/floodgate-go/floodgate/stores/denycache remembers a denial for a second at
// most, and a reset by another process takes effect here after that.
func WithoutDenialCache() Option { return func(o *options) { o.askAlways = true } }

// Log sets where the store reports items that cannot be read, and clocks that differ by a window or
// more, each once a minute at most: slog.Default() by default.
func Log(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// AnotherInstance lets the store count for limiters of the same names as another Store of this
// process on the same servers. Without it, Open returns an error, because two limiters that share
// their counters by accident deny each other's clients. It is for tests and benchmarks.
func AnotherInstance() Option { return func(o *options) { o.apart = true } }

// Store is a [core.Store] that counts in memcached. It is made by [New]. Its methods, and those of
// the Counters that Open returns, may be called concurrently.
type Store struct {
	options
	client *memcache.Client
	server memcache.ServerSelector
	swaps  *swapstore.Store
	runner *intime.Runner
	turns  turns
	outer  core.Store // direct, or the denial cache around it
	names  *names.Owner
	gate   *closing.Gate
}

// New returns a store that counts in the servers, each "host:port" or the path of a Unix socket. An
// operation fails if the server of its key does not answer: a limiter then answers 503. To decide
// in the process instead, or to allow all requests, put package
// github.com/floodgate-go/floodgate/stores/resilient around the store.
//
// The order of the servers must be the same in all instances. New looks host names up, once, but
// does not connect. The error wraps [core.ErrConfig] and names the fields.
func New(servers []string, opts ...Option) (*Store, error) {
	o := options{timeout: 200 * time.Millisecond, clock: time.Now}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{core.ErrConfig}, args...)...))
	}
	if o.timeout < time.Millisecond {
		bad("Timeout: %v: must be 1ms or more", o.timeout)
	}
	if o.clock == nil {
		bad("Clock: nil: must be a function")
	}
	if len(servers) == 0 {
		bad("servers: none")
	}
	selector := new(memcache.ServerList)
	if err := selector.SetServers(servers...); err != nil {
		bad("servers: %q: %w", servers, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	client := memcache.NewFromSelector(selector)
	client.Timeout, client.MaxIdleConns = o.timeout, mostIdle
	s := &Store{options: o, client: client, server: selector, runner: intime.New(o.timeout), turns: turns{seed: maphash.MakeSeed()}, gate: closing.New("memcached")}
	s.names = names.New("memcached "+strings.Join(slices.Sorted(slices.Values(servers)), ","), o.apart)
	runtime.AddCleanup(s, (*names.Owner).Release, s.names)
	s.swaps = core.Must(swapstore.New(items{client}, swapstore.Config{Clock: o.clock, Attempts: maxAttempts, Log: o.log}))
	s.outer = direct{s}
	if !o.askAlways {
		s.outer = core.Must(denycache.New(s.outer, denycache.Config{Clock: o.clock}))
	}
	return s, nil
}

// Open implements [core.Store].
func (s *Store) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := s.gate.Err(); err != nil {
		return nil, err
	}
	c, err := s.outer.Open(limiter, rules)
	if err != nil {
		return nil, err
	}
	return s.gate.Open(c), nil
}

// Guarantees implements [core.Store].
func (s *Store) Guarantees() core.Guarantees {
	g := s.swaps.Guarantees()
	g.KeepsDeadline = true
	return g
}

// Ping returns an error if a server does not answer, for a program that wants to know at its start
// that the store works. It takes at most the Timeout for each server.
func (s *Store) Ping(context.Context) error {
	if err := s.gate.Err(); err != nil {
		return err
	}
	if err := s.client.Ping(); err != nil {
		return fmt.Errorf("memcached: %w", err)
	}
	return nil
}

// Close closes the connections, and releases the names of the limiters for another Store of this
// process. Every later call returns an error that wraps [core.ErrClosed]; operations under way end
// normally. Closing again does nothing.
func (s *Store) Close() error {
	s.gate.Close()
	s.names.Release()
	return s.client.Close()
}

const (
	longest = 30 * 24 * time.Hour // memcached takes a longer time for a date (protocol.txt, "Expiration times")
	slack   = time.Minute         // how much longer than needed an item is kept: a clock may be late

	// LongestLifetime is the longest [core.Limit.Lifetime] that Open accepts: 30 days less 61 seconds.
	LongestLifetime = longest - slack - time.Second

	maxAttempts = 64    // of a swap; usually the deadline ends them earlier
	mostIdle    = 1_024 // idle connections to a server
)

// direct is a Store without the denial cache.
type direct struct{ *Store }

// Open implements [core.Store].
func (d direct) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	if err := check30Days(rules); err != nil {
		return nil, err
	}
	if err := d.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	inner, err := d.swaps.Open(limiter, rules)
	return &counters{d.Store, limiter, rules, inner}, err
}

// check30Days returns an error for limits whose state memcached would drop while it still counts.
func check30Days(rules []core.StoreRule) error {
	var errs []error
	for _, r := range rules {
		for _, l := range r.Limits {
			if life := l.Lifetime(); life > LongestLifetime {
				errs = append(errs, fmt.Errorf("%w: rule %q, limit %q: Window: %v: hits count for up to %v, and a store in memcached keeps them for at most %v",
					core.ErrConfig, r.Name, l.Name, l.Window, life, LongestLifetime))
			}
		}
	}
	return errors.Join(errs...)
}

// counters are those of a swapstore.Store. Their operations return in time and then continue in the
// background: a charge is not lost because the client has hung up.
type counters struct {
	*Store
	limiter string
	rules   []core.StoreRule
	inner   core.Counters
}

// Reopen implements [core.Counters].
func (c *counters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	if err := check30Days(rules); err != nil {
		return nil, err
	}
	inner, err := c.inner.Reopen(rules)
	return &counters{c.Store, c.limiter, rules, inner}, err
}

// Do implements [core.Counters]. A block for longer than memcached keeps a value is an error that
// wraps [core.ErrConfig].
func (c *counters) Do(ctx context.Context, b *core.Batch) error {
	if b.For > LongestLifetime {
		return fmt.Errorf("%w: limiter %q: blocking for %v: a store in memcached keeps values for at most %v", core.ErrConfig, c.limiter, b.For, LongestLifetime)
	}
	if err := c.runner.Do(ctx, (*operation)(c), b); err != nil {
		return fmt.Errorf("memcached: limiter %q: %w", c.limiter, err)
	}
	return nil
}

// ServerOf returns the address of the server that has the counters of a key of the rule with this
// index: package resilient gives each server a circuit breaker.
func (c *counters) ServerOf(rule int, key []byte) string {
	addr, _ := c.server.PickServer(c.rules[rule].StoredKey(c.limiter, key)) // New rejects an empty list, the only error
	return addr.String()
}

// operation does the operations of counters, with a deadline of their own: the end of the caller's
// context ends only the waiting.
type operation counters

func (o *operation) Do(ctx context.Context, b *core.Batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.timeout)
	defer cancel()
	defer o.turns.begin(b.Items)()
	return o.inner.Do(ctx, b)
}

// turns makes the callers of this process swap an item one after another: of many at once, all but
// one would fail and try again. A caller whose turn comes after its deadline returns at once.
type turns struct {
	seed  maphash.Seed
	turns [1024]sync.Mutex // each key has one of them
}

// begin waits for the turns of all items' keys and returns the function that ends them. Turns are
// taken in ascending order, so that no two callers wait for each other.
func (t *turns) begin(items []core.Item) (end func()) {
	places := make([]int, 0, len(items))
	for i := range items {
		places = append(places, int(maphash.Bytes(t.seed, items[i].Key)%uint64(len(t.turns))))
	}
	slices.Sort(places)
	places = slices.Compact(places)
	for _, p := range places {
		t.turns[p].Lock()
	}
	return func() {
		for _, p := range places {
			t.turns[p].Unlock()
		}
	}
}
