package core_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
