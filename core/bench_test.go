package core_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func BenchmarkAllow(b *testing.B) {
	for _, size := range sizes {
		b.Run("keys="+size.name, func(b *testing.B) {
			l, keys, ctx := benchLimiter(b), benchKeys(size.keys), context.Background()
			for _, k := range keys {
				l.Allow(ctx, core.Hit{Rule: "k", Key: k})
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !l.Allow(ctx, core.Hit{Rule: "k", Key: keys[i]}) {
					b.Fatal("denied")
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

func benchLimiter(b *testing.B, rules ...core.Rule) *core.Limiter {
	b.Helper()
	if len(rules) == 0 {
		rules = []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1_000_000_000)}}}
	}
	return core.Must(core.New(core.Config{Rules: rules}))
}

// benchKeys returns keys whose texts stand one behind the other in memory: used
// in this order, which is none to a hash table, they cost no cache miss of
// their own.
func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(1_000_000_000+i)
	}
	return keys
}

var sizes = []struct {
	name string
	keys int
}{{"1", 1}, {"1k", 1_000}, {"100k", 100_000}, {"1M", 1_000_000}}

func BenchmarkTake(b *testing.B) {
	for _, size := range sizes {
		b.Run("keys="+size.name, func(b *testing.B) {
			l, keys, ctx := benchLimiter(b), benchKeys(size.keys), context.Background()
			for _, k := range keys {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k})
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				d, _ := l.Take(ctx, 1, core.Hit{Rule: "k", Key: keys[i]})
				if !d.Allowed {
					b.Fatal(d)
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	for _, size := range sizes {
		b.Run("keys="+size.name, func(b *testing.B) {
			l, keys, ctx := benchLimiter(b), benchKeys(size.keys), context.Background()
			for _, k := range keys {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k})
			}
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(len(keys)); pb.Next(); i++ {
					_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: keys[i%len(keys)]})
				}
			})
		})
	}
}

func BenchmarkTakeAlgorithm(b *testing.B) {
	for _, limit := range []core.Limit{
		{Quota: 1e9, Window: time.Hour},
		{Quota: 1e9, Window: time.Hour, Algorithm: core.FixedWindow},
		{Quota: 1e9, Window: time.Hour, Algorithm: core.TokenBucket},
		{Quota: 1e9, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
		{Quota: 1000, Window: time.Millisecond, Algorithm: core.SlidingLog},
	} {
		b.Run(limit.Algorithm.String(), func(b *testing.B) {
			l, ctx := benchLimiter(b, core.Rule{Name: "k", Limits: []core.Limit{limit}}), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "key"})
			}
		})
	}
}

// BenchmarkTakeMany takes 3 limits × 2 keys in one step.
func BenchmarkTakeMany(b *testing.B) {
	limits := []core.Limit{core.PerSecond(2e9), core.PerMinute(2e9), core.PerHour(2e9)}
	l := benchLimiter(b,
		core.Rule{Name: "ip", Limits: limits},
		core.Rule{Name: "user", Limits: []core.Limit{
			{Name: "a", Quota: 2e9, Window: time.Second}, {Name: "b", Quota: 2e9, Window: time.Minute}, {Name: "c", Quota: 2e9, Window: time.Hour},
		}})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Take(ctx, 1, core.Hit{Rule: "ip", Key: "192.0.2.1"}, core.Hit{Rule: "user", Key: "42"})
	}
}

func BenchmarkTakeDenied(b *testing.B) {
	l := benchLimiter(b, core.Rule{Name: "k", Limits: []core.Limit{core.PerHour(1)}})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "key"})
	}
}

// BenchmarkMillionKeys reports the live memory of a key, and how much longer a
// garbage collection takes with a million keys held than with none.
func BenchmarkMillionKeys(b *testing.B) {
	ctx, keys := context.Background(), benchKeys(1_000_000)
	var before, after runtime.MemStats
	collect := func() time.Duration {
		shortest := time.Hour
		for range 5 {
			start := time.Now()
			runtime.GC()
			shortest = min(shortest, time.Since(start))
		}
		return shortest
	}
	for b.Loop() {
		without := collect()
		runtime.ReadMemStats(&before)
		l := benchLimiter(b)
		for _, k := range keys {
			_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k})
		}
		with := collect()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(keys)), "bytes/key")
		b.ReportMetric(float64((with - without).Microseconds()), "µs/gc-more")
		runtime.KeepAlive(l)
	}
}

// BenchmarkInsertAtCapacity inserts new keys into a store that holds MaxKeys
// keys, in different states.
func BenchmarkInsertAtCapacity(b *testing.B) {
	const maxKeys = 1_000_000
	hour := func(quota int64) []core.Limit { return []core.Limit{core.PerHour(quota)} }
	for _, c := range []struct {
		name        string
		limits      []core.Limit // of the keys that fill the store
		hits        int          // on each of them
		expire      bool
		later       time.Duration // how much later the new keys come
		into        string        // the rule of the new keys
		otherLimits []core.Limit
		rules       int // more rules in the store
	}{
		{name: "denied", limits: hour(1), hits: 1, into: "k"},
		{name: "denied_but_the_newest", limits: hour(2), hits: 2, into: "k"},
		{name: "half_used", limits: hour(2), hits: 1, into: "k"},
		{name: "expired", limits: hour(2), hits: 1, expire: true, into: "k"},
		{name: "two_rules_denied", limits: hour(1), hits: 1, into: "other", otherLimits: hour(1)},
		{name: "two_rules_half_used", limits: hour(2), hits: 1, into: "other", otherLimits: hour(2)},
		{name: "two_hundred_rules", limits: hour(1), hits: 1, into: "other", otherLimits: hour(1), rules: 200},
		{name: "buckets_denied", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}, hits: 1, into: "k"},
		{name: "buckets_denied_early", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}, hits: 1, later: 50 * time.Minute, into: "k"},
		{name: "token_bucket_denied", limits: []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.TokenBucket}}, hits: 1, into: "k"},
		{name: "three_limits_denied", limits: []core.Limit{core.PerMinute(1), core.PerHour(1), {Quota: 1, Window: 24 * time.Hour}}, hits: 1, into: "k"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.otherLimits == nil {
				c.otherLimits = hour(1)
			}
			now, ctx := time.Unix(1_700_000_000, 0), context.Background()
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: func() time.Time { return now }}))
			l := core.Must(core.New(core.Config{Store: m, Rules: []core.Rule{
				{Name: "k", Limits: c.limits}, {Name: "other", Limits: c.otherLimits},
			}}))
			for i := range c.rules {
				more := core.Must(core.New(core.Config{Name: strconv.Itoa(i), Store: m, Rules: []core.Rule{
					{Name: "more", Limits: c.limits},
				}}))
				for range maxKeys / 2 / c.rules {
					_, _ = more.Take(ctx, 1, core.Hit{Rule: "more", Key: strconv.Itoa(m.Len())})
				}
			}
			for i := 0; m.Len() < maxKeys; i++ {
				for range c.hits {
					_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "old" + strconv.Itoa(i)})
				}
			}
			if c.expire {
				now = now.Add(3 * time.Hour)
			}
			now = now.Add(c.later)
			keys, i := benchKeys(2_000_000), 0
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			b.ReportAllocs()
			begun := cpuTime()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: c.into, Key: keys[i%len(keys)]})
				i++
			}
			b.ReportMetric(float64(cpuTime()-begun)/float64(i), "cpu-ns/op")
		})
	}
}

// BenchmarkLongestCall reports the longest of a million calls that insert new
// keys: into an empty store, into a full one in which no key has expired, and
// into one in which all have. It is the time that the thread ran, with the
// garbage collector off, so that neither other programs nor a collection are in
// it. Interrupts are, and whatever else a hypervisor charges to the thread: the
// longest of as many calls that only count for about as long shows how much.
func BenchmarkLongestCall(b *testing.B) {
	for _, c := range []struct {
		name   string
		limits []core.Limit
	}{
		{"denied", []core.Limit{core.PerHour(1)}},
		{"half_used", []core.Limit{core.PerHour(2)}},
		{"three_limits", []core.Limit{core.PerMinute(1), core.PerHour(1), {Quota: 1, Window: 24 * time.Hour}}},
		{"buckets", []core.Limit{{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			ctx, keys := context.Background(), benchKeys(3_000_000)
			for b.Loop() {
				now := time.Unix(1_700_000_000, 0)
				store := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1_000_000, Clock: func() time.Time { return now }}))
				l := core.Must(core.New(core.Config{Store: store, Rules: []core.Rule{{Name: "k", Limits: c.limits}}}))
				take := func(k string) { _, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: k}) }
				reportLongest(b, "fill", keys[:1_000_000], take)
				reportLongest(b, "turnover", keys[1_000_000:2_000_000], take)
				now = now.Add(72 * time.Hour)
				reportLongest(b, "expiry", keys[2_000_000:], take)
				sum := 0
				reportLongest(b, "counting", keys[2_000_000:], func(string) {
					for i := range 2000 {
						sum ^= sum + i
					}
				})
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func reportLongest(b *testing.B, name string, keys []string, call func(key string)) {
	b.Helper()
	runtime.GC()
	var most time.Duration
	long := 0
	for before := cpuTime(); len(keys) > 0; keys = keys[1:] {
		call(keys[0])
		after := cpuTime()
		most = max(most, after-before)
		if after-before > 100*time.Microsecond {
			long++
		}
		before = after
	}
	b.ReportMetric(float64(most.Nanoseconds())/1e3, "µs/longest-"+name)
	b.ReportMetric(float64(long), "longer-than-100µs-"+name)
}

// observeFunc is an Observer of one function.
type observeFunc func(limiter string, rules []core.Rule) core.ObserverFuncs

func (f observeFunc) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	return f(limiter, rules)
}

// BenchmarkObserved measures what an observer adds that counts into one number.
func BenchmarkObserved(b *testing.B) {
	var allowed atomic.Int64
	counting := observeFunc(func(string, []core.Rule) core.ObserverFuncs {
		return core.ObserverFuncs{Decided: func(_ context.Context, o core.Observation) {
			if o.Allowed {
				allowed.Add(1)
			}
		}}
	})
	rules := []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1_000_000_000)}}}
	for _, c := range []struct {
		name     string
		observer core.Observer
	}{{"none", nil}, {"counting", counting}} {
		l, ctx := core.Must(core.New(core.Config{Rules: rules, Observer: c.observer})), context.Background()
		b.Run("take/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "key"})
			}
		})
		b.Run("allow/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = l.Allow(ctx, core.Hit{Rule: "k", Key: "key"})
			}
		})
	}
}

// Takes with quotas of their own, settlements and calendar windows, beside a take
// without any of them.
func BenchmarkQuotas(b *testing.B) {
	ctx := context.Background()
	day := core.Limit{Quota: 1_000_000_000, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Zone: time.UTC}
	hour := core.PerHour(1_000_000_000)
	plain := func(key string) core.Hit { return core.Hit{Rule: "k", Key: key} }
	plans := []int64{500_000_000, 1_500_000_000}
	for _, row := range []struct {
		name  string
		limit core.Limit
		hit   func(key string) core.Hit
		after func(l *core.Limiter, d core.Decision) error
	}{
		{"without", hour, plain, nil},
		{"quotas", hour, func(key string) core.Hit {
			i := int(key[len(key)-1]) % 2
			return core.Hit{Rule: "k", Key: key, Quotas: plans[i : i+1]}
		}, nil},
		{"unlimited", hour, func(key string) core.Hit { return core.Hit{Rule: "k", Key: key, Quotas: []int64{core.Unlimited}} }, nil},
		{"adjust", hour, plain, func(l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 3) }},
		{"calendar", day, plain, nil},
	} {
		for _, size := range sizes[:3] {
			b.Run(row.name+"/keys="+size.name, func(b *testing.B) {
				l, keys := benchLimiter(b, core.Rule{Name: "k", Limits: []core.Limit{row.limit}}), benchKeys(size.keys)
				for _, k := range keys {
					_, _ = l.Take(ctx, 1, row.hit(k))
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					d, err := l.Take(ctx, 1, row.hit(keys[i]))
					if !d.Allowed || err != nil {
						b.Fatal(d, err)
					}
					if row.after != nil {
						if err := row.after(l, d); err != nil {
							b.Fatal(err)
						}
					}
					if i++; i == len(keys) {
						i = 0
					}
				}
			})
		}
	}
}

// crowdOf makes n goroutines that do ask, and returns once n requests are waiting, and how many
// bytes of heap and stack that takes for each.
func crowdOf(tb testing.TB, n int, l *core.Limiter, ask func()) (heap, stack float64) {
	tb.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools have kept
	runtime.ReadMemStats(&before)
	for range n {
		go ask()
	}
	for range 1000 {
		if l.Stats().Waiting == n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := l.Stats().Waiting; got != n {
		tb.Fatalf("%d are waiting, want %d", got, n)
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n), float64(after.StackInuse-before.StackInuse) / float64(n)
}

// BenchmarkWaiters measures what a request that waits takes: of the heap, and of the stack of its
// goroutine, which the request needs anyway.
func BenchmarkWaiters(b *testing.B) {
	for _, row := range []struct {
		name string
		ask  func(context.Context, *core.Limiter)
	}{
		{"Check", func(ctx context.Context, l *core.Limiter) { l.Check(&request{ctx: ctx}) }},
		{"Wait", func(ctx context.Context, l *core.Limiter) {
			_, _ = l.Wait(ctx, 1, core.Hit{Rule: "r", Key: "k"})
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			const n = 10_000
			var heap, stack float64
			for b.Loop() {
				l := newLimiter(b, patient(core.MaxWindow, core.PerMinute(1)), nil)
				l.Check(&request{})
				ctx, cancel := context.WithCancel(b.Context())
				var done sync.WaitGroup
				done.Add(n)
				heap, stack = crowdOf(b, n, l, func() {
					defer done.Done()
					row.ask(ctx, l)
				})
				cancel()
				done.Wait()
			}
			b.ReportMetric(heap, "B/waiter")
			b.ReportMetric(stack, "stack-B/waiter")
		})
	}
}

// BenchmarkWaitLateness measures how much later than its instant each of 1,000 requests is allowed, one
// each millisecond.
func BenchmarkWaitLateness(b *testing.B) {
	var late []time.Duration
	for b.Loop() {
		const n = 1000
		// The bucket is empty: its instants do not depend on when hits are taken.
		l := newLimiter(b, patient(time.Minute, core.Limit{Quota: n, Window: time.Second, Algorithm: core.TokenBucket}), nil)
		if d, err := l.Take(b.Context(), n, core.Hit{Rule: "r", Key: "k"}); err != nil || !d.Allowed {
			b.Fatal(d, err)
		}
		begun := time.Now()
		allowed := make(chan time.Duration, n)
		for range n {
			go func() {
				l.Check(&request{})
				allowed <- time.Since(begun)
			}()
		}
		for i := range n {
			late = append(late, <-allowed-time.Duration(i+1)*time.Millisecond)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs-late")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs-late")
	b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs-late")
}

// BenchmarkPatience measures requests that are allowed at once, with and without a MaxWait.
func BenchmarkPatience(b *testing.B) {
	for name, wait := range map[string]time.Duration{"without MaxWait": 0, "with MaxWait": time.Second} {
		b.Run("Check "+name, func(b *testing.B) {
			l := newLimiter(b, patient(wait, core.PerSecond(core.MaxQuota)), nil)
			r := &request{}
			b.ReportAllocs()
			for b.Loop() {
				l.Check(r)
			}
		})
	}
	l := newLimiter(b, patient(0, core.PerSecond(core.MaxQuota)), nil)
	b.Run("Take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Take(b.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		}
	})
	b.Run("Wait", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = l.Wait(b.Context(), 1, core.Hit{Rule: "r", Key: "k"})
		}
	})
}
