package core_test

import (
	"context"
	"testing"

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
