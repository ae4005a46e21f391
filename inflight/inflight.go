// Package inflight limits how many requests of a key run at a time.
//
//	slots, err := inflight.New(inflight.Config{Name: "reports", Max: 3, Key: keyfuncs.User(currentUser)})
//	mux.Handle("/reports/", httplimit.Middleware(slots)(reports))
//
// It is for work that is slow or costly: reports, exports, uploads, calls of a model. A
// [core.Limiter] bounds how many requests begin in a window; a [Limiter] bounds how many run. For
// both, mount both, the slots outside: a request takes a slot, then a hit, and gives the slot back
// if the rate denies it.
//
//	mux.Handle("/reports/", httplimit.Middleware(slots)(httplimit.Middleware(rate)(reports)))
//
// # What is promised
//
//   - At most Max requests of a key run at a time: in this process, or with a Store in all
//     processes that share it. A slot that is held is never given to another request.
//   - A request holds its slot until its handler returns or panics, or for a stream until it has
//     been sent or the client has gone. The slot is released once.
//   - A program that runs something other than a handler calls [Limiter.Acquire]. So does a
//     handler that hijacks its connection, because the middleware releases the slot when the
//     handler returns. In Fiber, a stream is sent after the handler has returned, and holds no
//     slot: its handler calls Acquire, and the stream writer releases. An http.TimeoutHandler
//     inside the middleware returns while its handler still runs: mount the middleware inside it.
//   - With a Store, slots are leases that the process renews while they are held. The slots of
//     a process that has died are free again after Config.Lease. If a release fails, it is
//     repeated in the background until the lease has ended.
//   - If the Store does not answer, requests are denied with 503.
//   - If a process or the Store stops for longer than Config.Lease, or the Store loses its data,
//     the slots of running requests become free. The next renewal makes these requests count
//     again, even above Max.
//
// A denied request gets 429 and a Retry-After of a second, because the next release is unknown.
// Responses have no RateLimit headers, because these describe windows. The text of a decision and
// an observer show the limit as Max per millisecond.
package inflight

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// DefaultLease is the Lease of a Config without one.
const DefaultLease = 30 * time.Second

// The bounds of Config.Max and Config.Lease.
const (
	MaxSlots = 1_000_000
	MinLease = time.Second
	MaxLease = time.Hour
)

// Config configures a [Limiter].
type Config struct {
	// Name names the limiter in decisions, and its slots in the Store: 1 to 64 of the characters
	// A-Z a-z 0-9 _ . -. Required with a Store; otherwise empty means "default".
	Name string
	// Max is the most requests of a key that run at a time: 1 to MaxSlots.
	Max int64
	// Key returns the key of a request: see package keyfuncs. nil: the limiter is only for Acquire.
	Key core.KeyFunc
	// Store keeps the slots of all processes that share it; a redisstore.Store is one. nil: those
	// of this process only.
	Store Store
	// Lease is how long a process that has died holds its slots in the Store: MinLease to MaxLease.
	// Slots are renewed every third of it. All processes need the same. 0 means DefaultLease. It
	// has no effect without a Store.
	Lease time.Duration
	// Hooks, Log, Observer, DryRun, MaxWait and MaxWaiters are those of a [core.Config]. A request
	// takes one slot, whatever Hooks.Cost returns. The first in the line of a key asks again when
	// this process has released a slot, and every tenth of a second.
	Hooks      core.Hooks
	Log        *slog.Logger
	Observer   core.Observer
	DryRun     bool
	MaxWait    time.Duration
	MaxWaiters int
}

// Limiter allows at most Config.Max requests of a key at a time. It is made by [New]. It is a
// [core.Checker], which every adapter's Middleware takes. Its methods may be called concurrently.
type Limiter struct {
	limiter *core.Limiter
	slots   *slots
}

// New returns a limiter. The error wraps [core.ErrConfig] and names fields and values.
func New(c Config) (*Limiter, error) {
	if c.Name == "" && c.Store == nil {
		c.Name = "default"
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	s := newSlots(c)
	inner := c.core()
	inner.Store = s
	l, err := core.New(inner)
	if err != nil {
		return nil, err
	}
	return &Limiter{l, s}, nil
}

func (c *Config) check() error {
	if c.Max < 1 || c.Max > MaxSlots {
		return fmt.Errorf("%w: Max: %d: must be from 1 to %d", core.ErrConfig, c.Max, MaxSlots)
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Lease < MinLease || c.Lease > MaxLease {
		return fmt.Errorf("%w: Lease: %v: must be from %v to %v, or 0 for %v", core.ErrConfig, c.Lease, MinLease, MaxLease, DefaultLease)
	}
	return nil
}

// core returns the configuration of the limiter that decides. Counts makes adapters call Settle. A
// refund releases the slot. Window is the shortest, so that a place in line denies few requests.
func (c *Config) core() core.Config {
	if c.Hooks != nil {
		c.Hooks = hooks{c.Hooks}
	}
	return core.Config{
		Name: c.Name, Hooks: c.Hooks, Headers: core.HeadersOff, Log: c.Log, Observer: c.Observer,
		DryRun: c.DryRun, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters,
		Rules: []core.Rule{{
			Name: c.Name, Key: c.Key, Counts: func(core.Request, core.Outcome) bool { return false },
			Limits: []core.Limit{{Quota: c.Max, Window: core.MinWindow, Algorithm: core.FixedWindow}},
		}},
	}
}

// hooks are an application's, for requests that take one slot each.
type hooks struct{ core.Hooks }

func (hooks) Cost(core.Request) (int64, error) { return 1, nil }

// Reconfigure replaces all of the configuration but Name, Store and Lease, which stay whatever c
// has. Slots that are held stay held, and requests that wait keep the old Max. After an error
// nothing has changed.
func (l *Limiter) Reconfigure(c Config) error {
	c.Name, c.Lease = l.limiter.Name(), l.slots.lease
	if err := c.check(); err != nil {
		return err
	}
	return l.limiter.Reconfigure(c.core())
}

// Check implements [core.Checker]: it takes a slot.
func (l *Limiter) Check(r core.Request) core.Decision { return l.limiter.Check(r) }

// Deny implements [core.Checker].
func (l *Limiter) Deny(r core.Request, d core.Decision) core.Denial { return l.limiter.Deny(r, d) }

// Settle implements [core.Checker]: it releases the slot.
func (l *Limiter) Settle(r core.Request, d core.Decision, _ core.Outcome) { l.release(r.Context(), d) }

// release releases the slot of a decision, once: core adjusts a charge once.
func (l *Limiter) release(ctx context.Context, d core.Decision) {
	_ = l.limiter.Adjust(ctx, d, 0) // the store repeats what fails
}

// Acquire takes a slot of a key for something that is not a request, and never waits. ok reports
// whether there was one. If so, the caller calls release when what it has begun is done; a caller
// that forgets it holds the slot for ever. release is never nil, and may be called several times
// and concurrently: the first call counts. In a dry run ok is true even if there was no slot.
//
// If err is not nil, ok is false: it is the store's, and the slot is released in the background if
// it was taken.
func (l *Limiter) Acquire(ctx context.Context, key string) (release func(), ok bool, err error) {
	d, err := l.limiter.Take(ctx, 1, core.Hit{Rule: l.limiter.Name(), Key: key})
	if !d.Allowed {
		return func() {}, false, err
	}
	return func() { l.release(ctx, d) }, true, nil
}

// Held returns how many slots of all keys this process holds.
func (l *Limiter) Held() int64 { return l.slots.held.Load() }

// Name returns the limiter's name.
func (l *Limiter) Name() string { return l.limiter.Name() }

// Close ends the renewals and the releases in the background. Slots that are held in a Store end
// with their leases, or if they are released, at once. Later requests fail with an error that wraps
// [core.ErrClosed]. Closing again does nothing. Close always returns nil.
func (l *Limiter) Close() error {
	l.slots.close()
	return nil
}
