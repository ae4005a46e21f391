package memcachedstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/faultproxy"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that never passes, for tests of decisions on machines
// that may be busy.

const patience = 20 * time.Second

func newStore(t testing.TB, servers []string, opts ...memcachedstore.Option) *memcachedstore.Store {
	t.Helper()
	opts = append([]memcachedstore.Option{memcachedstore.Timeout(patience), memcachedstore.AnotherInstance()}, opts...)
	s, err := memcachedstore.New(servers, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func factory(servers ...string) storetest.Factory {
	return func(t testing.TB, clock func() time.Time) core.Store {
		opts := []memcachedstore.Option{memcachedstore.Timeout(patience), memcachedstore.WithoutDenialCache()}
		if clock != nil {
			opts = append(opts, memcachedstore.Clock(clock))
		}
		return newStore(t, servers, opts...)
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, factory(memcachedtest.Start(t).Addr))
}

func TestOperations(t *testing.T) {
	t.Parallel()
	storetest.Operations(t, factory(memcachedtest.Start(t).Addr))
}

func TestShared(t *testing.T) {
	t.Parallel()
	addr := memcachedtest.Start(t).Addr
	storetest.Shared(t, func(t testing.TB, clocks ...func() time.Time) (stores []core.Store) {
		for _, clock := range clocks {
			stores = append(stores, factory(addr)(t, clock))
		}
		return stores
	})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, factory(memcachedtest.Start(t).Addr, memcachedtest.Start(t).Addr), storetest.GivesBack(), storetest.Keeps(30*24*time.Hour))
}

func newLimiter(t testing.TB, s core.Store, name string, limits ...core.Limit) *core.Limiter {
	t.Helper()
	l, err := core.New(core.Config{Name: name, Store: s, Rules: []core.Rule{{Name: "r", Limits: limits}}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(l *core.Limiter, key string) (core.Decision, error) {
	return l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: key})
}

func left(t testing.TB, l *core.Limiter, key string) int64 {
	t.Helper()
	d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "r", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// Many callers of a new key, in several instances: the sum is exact.
func TestAllCallersOfANewKeyAreCounted(t *testing.T) {
	t.Parallel()
	addr := memcachedtest.Start(t).Addr
	for _, callers := range []int{64, 512} {
		var limiters []*core.Limiter
		for range 4 {
			limiters = append(limiters, newLimiter(t, newStore(t, []string{addr}, memcachedstore.Timeout(patience)), fmt.Sprint("new", callers), core.PerHour(1000)))
		}
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				if d, err := take(limiters[i%len(limiters)], "k"); err != nil || !d.Allowed {
					t.Errorf("%v, %v", d, err)
				}
			})
		}
		wg.Wait()
		if got := left(t, limiters[0], "k"); got != 1000-int64(callers) {
			t.Errorf("%d left after %d takes", got, callers)
		}
	}
}

// Exactly the quota is allowed, by all instances together.
func TestFourInstancesAllowExactlyTheQuota(t *testing.T) {
	addr := memcachedtest.Start(t).Addr
	for i, l := range []core.Limit{
		core.PerHour(20),
		{Quota: 20, Window: time.Hour, Algorithm: core.FixedWindow},
		{Quota: 20, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
		{Quota: 20, Window: time.Hour, Algorithm: core.SlidingLog},
		{Quota: 20, Window: 100 * time.Hour, Algorithm: core.TokenBucket},
	} {
		var allowed atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			limiter := newLimiter(t, newStore(t, []string{addr}, memcachedstore.Timeout(patience)), fmt.Sprint("exact", i), l)
			for range 160 {
				wg.Go(func() {
					if d, err := take(limiter, "k"); err != nil {
						t.Error(err)
					} else if d.Allowed {
						allowed.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if n := allowed.Load(); n != 20 {
			t.Errorf("%v: %d of 640 allowed, want 20", l, n)
		}
	}
}

// Windows of a second for a minute: never open early.
func TestWindowsOfASecond(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(time.UnixMicro(1_764_000_123_456_789))
	s := newStore(t, []string{memcachedtest.Start(t).Addr}, memcachedstore.Timeout(patience), memcachedstore.Clock(clock.Now))
	l := newLimiter(t, s, "second", core.Limit{Quota: 5, Window: time.Second, Algorithm: core.SlidingLog})
	r := rand.New(rand.NewPCG(1, 2))
	var allowed []time.Time
	for end := clock.Now().Add(time.Minute); clock.Now().Before(end); clock.Advance(time.Duration(r.Int64N(100_000)) * time.Microsecond) {
		within := 0
		for _, at := range allowed {
			if clock.Now().Sub(at) < time.Second {
				within++
			}
		}
		d, err := take(l, "k")
		if err != nil || d.Allowed != (within < 5) {
			t.Fatalf("%d in the last second: %v, %v", within, d, err)
		}
		if d.Allowed {
			allowed = append(allowed, clock.Now())
		}
	}
}

func TestGuarantees(t *testing.T) {
	t.Parallel()
	server := memcachedtest.Start(t)
	storetest.Guarantees(t, core.Guarantees{Ops: core.AllOps &^ core.OpResetAll, Exact: true, Shared: true, KeepsDeadline: true, OnFailure: core.FailClosed}, func(t testing.TB) storetest.Instances {
		proxy := faultproxy.Start(t, server.Addr)
		store := func() core.Store { return newStore(t, []string{proxy.Addr}, memcachedstore.Timeout(2*time.Second)) }
		return storetest.Instances{Stores: []core.Store{store(), store()}, Gone: func() { proxy.Fail(faultproxy.Swallow, -1) }}
	})
}

func BenchmarkTake(b *testing.B) {
	server := memcachedtest.Start(b)
	for _, goroutines := range []int{1, 16, 64} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%dgoroutines/%dkeys", goroutines, keys), func(b *testing.B) {
				l := newLimiter(b, newStore(b, []string{server.Addr}, memcachedstore.Timeout(patience)), fmt.Sprintf("b-%d-%d-%d", goroutines, keys, b.N), core.PerHour(core.MaxQuota))
				var next atomic.Int64
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							if _, err := take(l, fmt.Sprint(i%int64(keys))); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}
