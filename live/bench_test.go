package live_test

import (
	"fmt"
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
				b.ReportAllocs()
				for b.Loop() {
					_, _ = l.Take(b.Context(), 1, hit)
				}
			})
		}
	}
}
