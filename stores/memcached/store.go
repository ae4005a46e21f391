package memcachedstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
	"github.com/floodgate-go/floodgate/stores/internal/names"
)

// Store is a [core.Store] that counts in memcached. It is made by [New]. Its
// methods, and those of what Bind returns, may be called concurrently.
type Store struct {
	items   items
	options options
	direct  core.Store // with a deadline, without the denial cache
	cached  core.Store // what Bind binds
	names   *names.Owner
	gate    *closing.Gate
}

var _ core.Store = (*Store)(nil)

// New returns a store that counts in the servers, each "host:port" or the path
// of a Unix socket, and whose operations fail while the server of a key does not
// answer: a limiter then answers 503, unless package
// github.com/floodgate-go/floodgate/stores/resilient is around the store, which
// then decides in the process, or lets all requests through, or none.
//
// The order of the servers must be the same in all instances. Names are looked up
// once, now; nothing is connected yet. The error wraps [core.ErrConfig] and names
// the fields.
func New(servers []string, opts ...Option) (*Store, error) {
	o := newOptions(opts)
	errs := []error{o.check()}
	if len(servers) == 0 {
		errs = append(errs, fmt.Errorf("%w: servers: none", core.ErrConfig))
	}
	selector := new(memcache.ServerList)
	if err := selector.SetServers(servers...); err != nil {
		errs = append(errs, fmt.Errorf("%w: servers: %q: %w", core.ErrConfig, servers, err))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	client := memcache.NewFromSelector(selector)
	client.Timeout, client.MaxIdleConns = o.timeout, o.idle
	s := &Store{items: items{client, o.slack}, options: o, gate: closing.New("memcached")}
	s.names = names.New("memcached "+strings.Join(slices.Sorted(slices.Values(servers)), ","), o.apart)
	runtime.AddCleanup(s, (*names.Owner).Release, s.names)
	swaps, err := core.NewSwapStore(s.items, core.SwapConfig{Clock: o.clock, Attempts: maxAttempts, Unreadable: o.unreadable, Log: o.log})
	if err != nil {
		return nil, err
	}
	s.direct = &timely{swaps, intime.New(o.timeout), o, newTurns(), selector}
	s.cached = s.direct
	if !o.askAlways {
		s.cached = core.Must(denycache.New(s.direct, denycache.Config{Clock: o.clock}))
	}
	return s, nil
}

// maxAttempts is how often a swap is tried; the deadline comes first as a rule.
const maxAttempts = 64

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if err := s.gate.Err(); err != nil {
		return nil, err
	}
	if err := s.names.Claim(limiter); err != nil {
		return nil, err
	}
	b, err := s.cached.Bind(limiter, rules)
	if err != nil {
		s.names.Unclaim(limiter)
		return nil, err
	}
	return s.gate.Bind(b), nil
}

// Ping asks every server whether it is there. A program that wants to know at
// its start that the store works calls it then; nothing else does. It takes the
// Timeout at most for each server that cannot be reached.
func (s *Store) Ping(context.Context) error {
	if err := s.gate.Err(); err != nil {
		return err
	}
	if err := s.items.client.Ping(); err != nil {
		return fmt.Errorf("memcached: %w", err)
	}
	return nil
}

// Close closes the connections, and gives up the names of the limiters that the
// store counts for, so that another Store of this process can count for them.
// Every later call returns an error that wraps [core.ErrClosed]; operations under
// way end as they would have. Closing again does nothing.
func (s *Store) Close() error {
	s.gate.Close()
	s.names.Release()
	return s.items.client.Close()
}

// longest is the longest that memcached keeps an item; a longer lifetime it
// takes for a date (protocol.txt, "Expiration times").
const longest = 30 * 24 * time.Hour

// LongestLifetime returns the longest [core.Guarantees].Lifetime of a limit that a
// store with these options counts: 30 days without the slack that it keeps an item
// longer. Bind refuses other limits. It may be called concurrently.
func LongestLifetime(opts ...Option) time.Duration {
	o := newOptions(opts)
	return o.longestLifetime()
}

func (o *options) longestLifetime() time.Duration { return longest - o.slack - time.Second }

// check30Days refuses limits whose state memcached would drop while it still counts.
func (o *options) check30Days(rules []core.StoreRule) error {
	var errs []error
	for _, r := range rules {
		for _, l := range r.Limits {
			if life := l.Guarantees().Lifetime; life > o.longestLifetime() {
				errs = append(errs, fmt.Errorf("%w: rule %q, limit %q: Window: %v: hits count for up to %v, and a store in memcached keeps them for at most %v",
					core.ErrConfig, r.Name, l.Name, l.Window, life, o.longestLifetime()))
			}
		}
	}
	return errors.Join(errs...)
}
