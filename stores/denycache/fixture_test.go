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

// asked is a Memory that counts how often it is asked to take, and in which something
// else may happen at the same time.
type asked struct {
	core.Store
	takes      atomic.Int64
	err        error  // of every operation
	lost       error  // of every operation, which is done all the same
	degraded   bool   // takes are
	oneByOne   bool   // several items are taken one by one
	before     func() // is called once, before an operation
	after      func() // is called once, after an operation and before its answer
	unlookedAt bool   // all items of a denied batch but the last are
}

func (a *asked) Guarantees() core.Guarantees {
	g := a.Store.Guarantees()
	g.OneStep = !a.oneByOne
	return g
}

func (a *asked) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := a.Store.Open(limiter, rules)
	return askedCounters{c, a}, err
}

type askedCounters struct {
	core.Counters
	a *asked
}

func (c askedCounters) Do(ctx context.Context, b *core.Batch) error {
	once(&c.a.before)
	if c.a.err != nil {
		return c.a.err
	}
	if err := c.Counters.Do(ctx, b); err != nil {
		return err
	}
	if b.Op&(core.OpTake|core.OpPeek) != 0 {
		c.a.takes.Add(1)
		b.Degraded = c.a.degraded
		for i := range b.Items[:len(b.Items)-1] {
			b.Items[i].Unknown = c.a.unlookedAt && !b.Allowed
		}
	}
	once(&c.a.after)
	return c.a.lost
}

func (c askedCounters) Reopen(rules []core.StoreRule) (core.Counters, error) {
	next, err := c.Counters.Reopen(rules)
	return askedCounters{next, c.a}, err
}

func (askedCounters) ServerOf(rule int, key []byte) string {
	return string(key) + string(rune('0'+rule))
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

type fixture struct {
	t        *testing.T
	clock    *storetest.Clock
	inner    *asked
	store    *denycache.Store
	counters core.Counters
	rules    []core.StoreRule
}

func newFixture(t *testing.T, c denycache.Config, rules ...core.StoreRule) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: storetest.NewClock(time.UnixMicro(1_764_000_123_456_789)), rules: rules}
	f.inner = &asked{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: f.clock.Now}))}
	c.Clock = f.clock.Now
	f.store = core.Must(denycache.New(f.inner, c))
	f.counters = core.Must(f.store.Open("l", rules))
	return f
}

func rule(limits ...core.Limit) core.StoreRule { return core.StoreRule{Name: "r", Limits: limits} }

func hourly(n int64) core.StoreRule {
	return rule(core.Limit{Quota: n, Window: time.Hour, Algorithm: core.FixedWindow})
}

func (f *fixture) item(rule int, key string, cost int64) core.Item {
	return core.Item{Rule: rule, Key: []byte(key), Cost: cost, Results: make([]core.Result, len(f.rules[rule].Limits))}
}

// k is an item of the key k.
func (f *fixture) k(cost int64, quotas ...int64) core.Item {
	it := f.item(0, "k", cost)
	it.Quotas = quotas
	return it
}

func (f *fixture) do(op core.Op, items ...core.Item) *core.Batch {
	f.t.Helper()
	b := &core.Batch{Op: op, Items: items}
	if err := f.counters.Do(context.Background(), b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

func (f *fixture) take(items ...core.Item) *core.Batch {
	f.t.Helper()
	return f.do(core.OpTake, items...)
}

// useUp takes the whole quota of the last limit of the key k, and once more, which is denied.
func (f *fixture) useUp() {
	f.t.Helper()
	f.take(f.k(f.rules[0].Limits[len(f.rules[0].Limits)-1].Quota))
	if f.take(f.k(1)).Allowed {
		f.t.Fatal("allowed above the quota")
	}
}

// want checks how often the store is asked.
func (f *fixture) want(times int64, what string, do func()) {
	f.t.Helper()
	before := f.inner.takes.Load()
	do()
	if n := f.inner.takes.Load() - before; n != times {
		f.t.Errorf("%s: the store is asked %d times, want %d", what, n, times)
	}
}
