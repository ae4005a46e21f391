package live_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// BenchmarkDecisions is what a decision costs with and without the page.
func BenchmarkDecisions(b *testing.B) {
	for _, quota := range []int64{core.MaxQuota, 1} {
		for _, watched := range []bool{false, true} {
			b.Run(fmt.Sprintf("quota=%d/watched=%t", quota, watched), func(b *testing.B) {
				c := core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(quota)}}}}
				if watched {
					page := core.Must(live.New(live.Config{}))
					defer page.Close() //nolint:errcheck // always nil
					c.Observer = page
				}
				l := core.Must(core.New(c))
				hit := core.Hit{Rule: "r", Key: "192.0.2.1"}
				l.Allow(b.Context(), hit)
				b.ReportAllocs()
				for b.Loop() {
					_, _ = l.Take(b.Context(), 1, hit)
				}
			})
		}
	}
}

// BenchmarkMillionDeniedKeys is the memory of a page while a million keys are denied.
func BenchmarkMillionDeniedKeys(b *testing.B) {
	keys := make([]core.Hit, 1_000_000)
	for i := range keys {
		keys[i] = core.Hit{Rule: "r", Key: fmt.Sprintf("2001:db8::%x", i)}
	}
	for b.Loop() {
		page := core.Must(live.New(live.Config{}))
		l := core.Must(core.New(core.Config{Observer: page, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(0)}}}}))
		for i := range keys[:10_000] {
			_, _ = l.Take(b.Context(), 1, keys[i])
		}
		before := heap()
		for i := range keys {
			_, _ = l.Take(b.Context(), 1, keys[i])
		}
		b.ReportMetric(float64(heap()-before), "bytes")
		_ = page.Close()
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
