// Package storetest tests that a core.Store keeps its contract. It replays recorded decisions of
// other software, compares random operations with a plain model, and tests the contract under
// concurrency and with odd input.
//
//	func TestVectors(t *testing.T)     { storetest.Vectors(t, newStore) }
//	func TestConformance(t *testing.T) { storetest.Run(t, newStore) }
//	func TestGuarantees(t *testing.T)      { storetest.Guarantees(t, promised, newInstances) }
//	func TestOperations(t *testing.T)  { storetest.Operations(t, newStore) }
//	func TestShared(t *testing.T)      { storetest.Shared(t, newStores) } // of a store that processes share
//
// where newStore is a [Factory]:
//
//	func newStore(t testing.TB, clock func() time.Time) core.Store { ... }
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Factory returns an empty store that takes the time from clock, or from its own clock if clock is
// nil. It registers cleanup with t, and ends the test if it cannot make a store.
type Factory func(t testing.TB, clock func() time.Time) core.Store

// Option excludes from the tests a guarantee that a store does not give.
type Option func(*suite)

// GivesBack is for a store that takes several keys one by one, and refunds them if a later one is
// denied: until then other takes may be denied.
func GivesBack() Option { return func(s *suite) { s.givesBack = true } }

// KeepsTime is for a store whose clock cannot be set back, because it is a server's: tests that set
// it back are left out.
func KeepsTime() Option { return func(s *suite) { s.keepsTime = true } }

// Keeps is for a store that keeps nothing for longer than d after a hit. It must return an error
// for limits whose hits count for longer (core.Limit.Lifetime). The longest limits are tested only
// up to d.
func Keeps(d time.Duration) Option { return func(s *suite) { s.keeps = d } }

type suite struct {
	new       Factory
	keeps     time.Duration // 0: no bound
	givesBack bool
	keepsTime bool
}

// Run runs the tests of a store's contract, except those of [Vectors], [Operations], [Shared] and
// [Guarantees].
func Run(t *testing.T, newStore Factory, opts ...Option) {
	s := &suite{new: newStore}
	for _, opt := range opts {
		opt(s)
	}
	if s.keeps > 0 {
		t.Run("Keeps", s.refusesWhatItCannotKeep)
	}
	t.Run("Model", s.model)
	t.Run("Promises", s.promises)
	t.Run("Retry", s.retry)
	t.Run("Refund", s.refunds)
	t.Run("Grant", s.extras)
	t.Run("Lockout", s.lockouts)
	t.Run("Clock", s.clockSteps)
	t.Run("Extremes", s.extremes)
	t.Run("Keys", s.keys)
	t.Run("Bind", s.bind)
	t.Run("Rebind", s.rebind)
	t.Run("Raised", s.raised)
	t.Run("Context", s.context)
	t.Run("Concurrency", s.concurrency)
}

// longestWindow is the longest window that is tested: a sliding one, and a lockout of a few waits,
// needs its state for several times as long.
func (s *suite) longestWindow() time.Duration {
	if s.keeps > 0 {
		return (s.keeps / 12).Truncate(366 * time.Millisecond)
	}
	return core.MaxWindow
}

func (s *suite) refusesWhatItCannotKeep(t *testing.T) {
	store := s.new(t, nil)
	for _, l := range []core.Limit{
		{Name: "l", Quota: 1, Window: s.keeps, Algorithm: core.FixedWindow},
		{Name: "l", Quota: 1, Window: (s.keeps / 2).Truncate(time.Microsecond)},
		{Name: "l", Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket, Burst: int64(s.keeps / time.Hour)},
	} {
		if _, err := store.Open(uniqueName(), []core.StoreRule{{Name: "r", Limits: []core.Limit{l}}}); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: %v, want an error that wraps ErrConfig", l, err)
		}
	}
}

// Clock is a clock that a test sets. Its methods may be called concurrently.
type Clock struct{ micros atomic.Int64 }

// NewClock returns a clock that shows t until it is set.
func NewClock(t time.Time) *Clock {
	c := new(Clock)
	c.Set(t)
	return c
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time { return time.UnixMicro(c.micros.Load()) }

// Set sets the clock to t, truncated to the microsecond.
func (c *Clock) Set(t time.Time) { c.micros.Store(t.UnixMicro()) }

// Advance moves the clock by d, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// start is a time that is no multiple of any window.
func start() time.Time { return time.UnixMicro(1_764_000_123_456_789) }

// names gives every limiter of a test another name, so that many can share a store.
var names atomic.Int64

func uniqueName() string { return fmt.Sprintf("t%d", names.Add(1)) }

// counter is one store, bound to rules, as the tests use it.
type counter struct {
	t     testing.TB
	bound core.Counters
	rules []core.StoreRule
	ops   core.Op
}

// Do does an operation of a store's counters with a batch.
func Do(ctx context.Context, c core.Counters, op core.Op, b *core.Batch) error {
	b.Op = op
	return c.Do(ctx, b)
}

// needs skips the test if the store does not know all of these operations.
func (c *counter) needs(ops core.Op) {
	c.t.Helper()
	if c.ops&ops != ops {
		c.t.Skipf("the store does not know %v", ops&^c.ops)
	}
}

func bindRules(t testing.TB, store core.Store, rules ...core.StoreRule) *counter {
	t.Helper()
	bound, err := store.Open(uniqueName(), rules)
	if err != nil {
		t.Fatalf("Open(%v): %v", rules, err)
	}
	return &counter{t, bound, rules, store.Guarantees().Ops}
}

// one binds a single rule with these limits.
func one(t testing.TB, store core.Store, limits ...core.Limit) *counter {
	t.Helper()
	return bindRules(t, store, core.StoreRule{Name: "r", Limits: limits})
}

// item makes an item with room for its results.
func (c *counter) item(rule int, key string, cost int64) core.Item {
	return core.Item{Rule: rule, Key: []byte(key), Cost: cost, Results: make([]core.Result, len(c.rules[rule].Limits))}
}

func (c *counter) charge(items ...core.Item) *core.Batch {
	c.t.Helper()
	b := &core.Batch{Items: items}
	if err := Do(context.Background(), c.bound, core.OpCharge, b); err != nil {
		c.t.Fatalf("Charge: %v", err)
	}
	return b
}

func (c *counter) batch(peek bool, items ...core.Item) *core.Batch {
	c.t.Helper()
	b, op := &core.Batch{Items: items}, core.OpTake
	if peek {
		op = core.OpPeek
	}
	if err := Do(context.Background(), c.bound, op, b); err != nil {
		c.t.Fatalf("%v: %v", op, err)
	}
	return b
}

// take takes cost hits for a key of the first rule.
func (c *counter) take(key string, cost int64) *core.Batch {
	c.t.Helper()
	return c.batch(false, c.item(0, key, cost))
}

func (c *counter) peek(key string, cost int64) *core.Batch {
	c.t.Helper()
	return c.batch(true, c.item(0, key, cost))
}

func (c *counter) refund(b *core.Batch) {
	c.t.Helper()
	if err := Do(context.Background(), c.bound, core.OpRefund, b); err != nil {
		c.t.Fatalf("Refund: %v", err)
	}
}

func (c *counter) reset(items ...core.Item) {
	c.t.Helper()
	if err := Do(context.Background(), c.bound, core.OpReset, &core.Batch{Items: items}); err != nil {
		c.t.Fatalf("Reset: %v", err)
	}
}

// remaining returns what is left of the first rule's first limit.
func (c *counter) remaining(key string) int64 {
	c.t.Helper()
	return c.peek(key, 0).Items[0].Results[0].Remaining
}
