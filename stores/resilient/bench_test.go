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

func TestAllocations(t *testing.T) {
	f := newLink(nil)
	l := newLimiter(t, newStore(t, f, resilient.Config{}), core.PerHour(core.MaxQuota))
	for _, err := range []error{nil, errGone} {
		f.fail(err)
		for range 10 {
			_, _ = take(l)
		}
		if n := testing.AllocsPerRun(1000, func() { _, _ = take(l) }); n >= 1 {
			t.Errorf("the store's error %v: %v allocations a decision", err, n)
		}
	}
}
