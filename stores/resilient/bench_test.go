package resilient_test

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func BenchmarkTake(b *testing.B) {
	f := newLink(nil)
	f.fail(errGone)
	memory := func() core.Store { return core.Must(core.NewMemory(core.MemoryConfig{})) }
	for name, store := range map[string]core.Store{
		"memory": memory(),
		"up":     newStore(b, memory(), resilient.Config{}),
		"down":   newStore(b, f, resilient.Config{Retry: time.Hour}),
	} {
		l := newLimiter(b, store, core.PerHour(core.MaxQuota))
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
