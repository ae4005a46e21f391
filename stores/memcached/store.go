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
	"github.com/floodgate-go/floodgate/internal/names"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/internal/closing"
	"github.com/floodgate-go/floodgate/stores/internal/intime"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// Store is a [core.Store] that counts in memcached. It is made by [New]. Its
// methods, and those of the Bounds that Bind returns, may be called
// concurrently.
type Store struct {
	items   items
	options options
	direct  core.Store // with a deadline, without the denial cache
	cached  core.Store // the store that Bind binds
	names   *names.Owner
	gate    *closing.Gate
}

var _ core.Store = (*Store)(nil)

// New returns a store that counts in the servers, each "host:port" or the path
// of a Unix socket. An operation fails if the server of its key does not
// answer: a limiter then answers 503. To decide in the process instead, or to
// allow all requests, put package
// github.com/floodgate-go/floodgate/stores/resilient around the store.
//
// The order of the servers must be the same in all instances. New looks host
// names up, once, but does not connect. The error wraps [core.ErrConfig] and
// names the fields.
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
	swaps, err := swapstore.New(s.items, swapstore.Config{Clock: o.clock, Attempts: maxAttempts, Log: o.log})
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

// maxAttempts is how often a swap is tried. Usually the deadline ends it
// earlier.
const maxAttempts = 64

// Bind implements [core.Store].
func (s *Store) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if err := s.gate.Err(); err != nil {
		return nil, err
	}
	if err := s.names.Claim(limiter); err != nil {
		return nil, fmt.Errorf("%w: Name: %q: %w", core.ErrConfig, limiter, err)
	}
	b, err := s.cached.Bind(limiter, rules)
	if err != nil {
		s.names.Unclaim(limiter)
		return nil, err
	}
	return s.gate.Bind(b), nil
}

// Ping asks every server whether it answers. A program that wants to know at
// its start that the store works calls Ping; nothing else does. It takes at
// most the Timeout for each server that cannot be reached.
func (s *Store) Ping(context.Context) error {
	if err := s.gate.Err(); err != nil {
		return err
	}
	if err := s.items.client.Ping(); err != nil {
		return fmt.Errorf("memcached: %w", err)
	}
	return nil
}

// Close closes the connections, and releases the names of the limiters that the
// store counts for, so that another Store of this process can count for them.
// Every later call returns an error that wraps [core.ErrClosed]; operations
// under way end normally. Closing again does nothing.
func (s *Store) Close() error {
	s.gate.Close()
	s.names.Release()
	return s.items.client.Close()
}

// longest is the longest time for which memcached keeps an item; it takes a
// longer one for a date (protocol.txt, "Expiration times").
const longest = 30 * 24 * time.Hour

// LongestLifetime returns the longest [core.Limit.Lifetime] that a store with
// these options accepts: 30 days less the extra time for which it keeps an
// item. Bind returns an error for a limit with a longer one. LongestLifetime
// may be called concurrently.
func LongestLifetime(opts ...Option) time.Duration {
	o := newOptions(opts)
	return o.longestLifetime()
}

func (o *options) longestLifetime() time.Duration { return longest - o.slack - time.Second }

// check30Days returns an error for limits whose state memcached would drop
// while it still counts.
func (o *options) check30Days(rules []core.StoreRule) error {
	var errs []error
	for _, r := range rules {
		for _, l := range r.Limits {
			if life := l.Lifetime(); life > o.longestLifetime() {
				errs = append(errs, fmt.Errorf("%w: rule %q, limit %q: Window: %v: hits count for up to %v, and a store in memcached keeps them for at most %v",
					core.ErrConfig, r.Name, l.Name, l.Window, life, o.longestLifetime()))
			}
		}
	}
	return errors.Join(errs...)
}

// Traits returns the promises of the store. Several keys are swapped one by
// one.
func (s *Store) Traits() core.Traits {
	t, _ := core.TraitsOf(s.cached) // New has checked the store
	return t
}

// Traits returns the promises of the store without the denial cache.
func (s *timely) Traits() core.Traits {
	t := s.swaps.Traits()
	t.KeepsDeadline = true
	return t
}
