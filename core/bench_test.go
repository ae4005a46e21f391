package core_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func benchLimiter(b *testing.B, rules ...core.Rule) *core.Limiter {
	b.Helper()
	if len(rules) == 0 {
		rules = []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1_000_000_000)}}}
	}
	return core.Must(core.New(core.Config{Rules: rules}))
}

// benchKeys returns keys whose texts stand one behind the other in memory: used in this order,
// which is none to a hash table, they cost no cache miss of their own.
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
}{{"1", 1}, {"1k", 1_000}, {"1M", 1_000_000}}

// benchKnown calls ask for each of 1 to a million keys in turn. All of them are known.
func benchKnown(b *testing.B, ask func(l *core.Limiter, hit core.Hit) bool) {
	for _, size := range sizes {
		b.Run("keys="+size.name, func(b *testing.B) {
			l, keys := benchLimiter(b), benchKeys(size.keys)
			for _, k := range keys {
				ask(l, core.Hit{Rule: "k", Key: k})
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !ask(l, core.Hit{Rule: "k", Key: keys[i]}) {
					b.Fatal("denied")
				}
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
}

func allow(l *core.Limiter, hit core.Hit) bool { return l.Allow(context.Background(), hit) }

func takes(l *core.Limiter, hit core.Hit) bool {
	d, _ := l.Take(context.Background(), 1, hit)
	return d.Allowed
}

func BenchmarkAllow(b *testing.B) { benchKnown(b, allow) }

func BenchmarkTake(b *testing.B) { benchKnown(b, takes) }

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

// BenchmarkCheck decides as a middleware does, writes the headers and the response of a denial.
func BenchmarkCheck(b *testing.B) {
	for name, row := range map[string]struct {
		quota int64
		wait  time.Duration
	}{"allowed": {core.MaxQuota, 0}, "denied": {0, 0}, "MaxWait": {core.MaxQuota, time.Second}} {
		b.Run(name, func(b *testing.B) {
			l, r := newLimiter(b, patient(row.wait, core.PerHour(row.quota)), nil), &request{}
			var headers [8]core.Header
			b.ReportAllocs()
			for b.Loop() {
				d := l.Check(r)
				d.AppendHeaders(headers[:0])
				if !d.Allowed {
					l.Deny(r, d)
				}
			}
		})
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
	buckets := core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute}
	for _, c := range []struct {
		name   string
		limits []core.Limit // of the keys that fill the store
		hits   int          // on each of them
		expire bool
		into   string // the rule of the new keys
	}{
		{"denied", []core.Limit{core.PerHour(1)}, 1, false, "k"},
		{"half_used", []core.Limit{core.PerHour(2)}, 1, false, "k"},
		{"expired", []core.Limit{core.PerHour(2)}, 1, true, "k"},
		{"two_rules_denied", []core.Limit{core.PerHour(1)}, 1, false, "other"},
		{"buckets_denied", []core.Limit{buckets}, 1, false, "k"},
		{"three_limits_denied", []core.Limit{core.PerMinute(1), core.PerHour(1), core.PerDay(1)}, 1, false, "k"},
	} {
		b.Run(c.name, func(b *testing.B) {
			now, ctx := time.Unix(1_700_000_000, 0), context.Background()
			m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: maxKeys, Clock: func() time.Time { return now }}))
			l := core.Must(core.New(core.Config{Store: m, Rules: []core.Rule{
				{Name: "k", Limits: c.limits}, {Name: "other", Limits: []core.Limit{core.PerHour(1)}},
			}}))
			for i := 0; m.Len() < maxKeys; i++ {
				for range c.hits {
					_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "old" + strconv.Itoa(i)})
				}
			}
			if c.expire {
				now = now.Add(3 * time.Hour)
			}
			keys, i := benchKeys(2_000_000), 0
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: c.into, Key: keys[i%len(keys)]})
				i++
			}
		})
	}
}
