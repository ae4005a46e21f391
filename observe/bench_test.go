package observe_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/observe"
)

// BenchmarkCounts measures what Counts add to a decision in the process.
func BenchmarkCounts(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name     string
		observer core.Observer
	}{{"without", nil}, {"with", observe.NewCounts()}} {
		l := core.Must(core.New(core.Config{Observer: c.observer, Rules: []core.Rule{{Name: "k", Limits: []core.Limit{core.PerHour(1_000_000_000)}}}}))
		b.Run("take/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = l.Take(ctx, 1, core.Hit{Rule: "k", Key: "key"})
			}
		})
		b.Run("allow/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.Allow(ctx, core.Hit{Rule: "k", Key: "key"})
			}
		})
		b.Run("parallel/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var keys [64]string
				for i := range keys {
					keys[i] = "key" + strconv.Itoa(i)
				}
				for i := 0; pb.Next(); i++ {
					l.Allow(ctx, core.Hit{Rule: "k", Key: keys[i&63]})
				}
			})
		})
	}
}
