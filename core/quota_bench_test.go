package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
