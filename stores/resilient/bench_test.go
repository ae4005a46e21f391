package resilient_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func BenchmarkDown(b *testing.B) {
	f := newFlaky(b, nil)
	f.fail(errGone)
	for name, l := range map[string]*core.Limiter{
		"in process": newLimiter(b, newStore(b, f, resilient.Config{Retry: time.Hour}), core.MaxQuota),
		"memory":     newLimiter(b, nil, core.MaxQuota),
	} {
		for range 10 {
			_, _ = take(l)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := take(l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUp(b *testing.B) {
	l := newLimiter(b, newStore(b, core.Must(core.NewMemory(core.MemoryConfig{})), resilient.Config{}), core.MaxQuota)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := take(l); err != nil {
			b.Fatal(err)
		}
	}
}
