package denycache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/denycache"
)

// counting counts what a store is asked.
type counting struct {
	core.Store
	takes atomic.Int64
	err   error
	mark  bool // answers are degraded
	slots bool // several items are taken one by one

	meanwhile func() // is called while the store is asked
	after     func() // is called when it has decided
}

func (c *counting) Traits() core.Traits {
	t := core.Must(core.TraitsOf(c.Store))
	t.OneStep = !c.slots
	return t
}

type countingBound struct {
	core.Bound
	c *counting
}

func (c *counting) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := c.Store.Bind(limiter, rules)
	return countingBound{b, c}, err
}

func (b countingBound) Take(ctx context.Context, batch *core.Batch) error {
	b.c.takes.Add(1)
	if b.c.err != nil {
		return b.c.err
	}
	if b.c.meanwhile != nil {
		b.c.meanwhile()
	}
	err := b.Bound.Take(ctx, batch)
	batch.Degraded = b.c.mark
	if b.c.after != nil {
		b.c.after()
	}
	return err
}

func (b countingBound) Charge(ctx context.Context, batch *core.Batch) error {
	if b.c.err != nil {
		return b.c.err
	}
	return b.Bound.Charge(ctx, batch)
}

func (b countingBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next, err := b.Bound.Rebind(rules)
	return countingBound{next, b.c}, err
}

type fixture struct {
	t     *testing.T
	clock *storetest.Clock
	inner *counting
	store *denycache.Store
	bound core.Bound
	rules []core.StoreRule
}

func newFixture(t *testing.T, c denycache.Config, rules ...core.StoreRule) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), rules: rules}
	memory, err := core.NewMemory(core.MemoryConfig{Clock: f.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	f.inner = &counting{Store: resets{memory, new(core.Bound)}}
	c.Clock = f.clock.Now
	if f.store, err = denycache.New(f.inner, c); err != nil {
		t.Fatal(err)
	}
	if f.bound, err = f.store.Bind("l", rules); err != nil {
		t.Fatal(err)
	}
	return f
}

func rule(limits ...core.Limit) core.StoreRule { return core.StoreRule{Name: "r", Limits: limits} }

func (f *fixture) item(rule int, key string, cost int64) core.Item {
	return core.Item{Rule: rule, Key: []byte(key), Cost: cost, Results: make([]core.Result, len(f.rules[rule].Limits))}
}

func (f *fixture) take(items ...core.Item) *core.Batch {
	f.t.Helper()
	b := &core.Batch{Items: items}
	if err := f.bound.Take(context.Background(), b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

// asked returns how many commands f costs the store.
func (f *fixture) asked(do func()) int64 {
	before := f.inner.takes.Load()
	do()
	return f.inner.takes.Load() - before
}
