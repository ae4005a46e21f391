package memcachedstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
)

func BenchmarkTake(b *testing.B) {
	server := memcachedtest.Start(b)
	for _, goroutines := range []int{1, 16, 64} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%dgoroutines/%dkeys", goroutines, keys), func(b *testing.B) {
				l := newLimiter(b, newStore(b, []string{server.Addr}, memcachedstore.Timeout(patience)), fmt.Sprintf("b-%d-%d-%d", goroutines, keys, b.N), core.PerHour(core.MaxQuota))
				var next atomic.Int64
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() {
						for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
							if _, err := take(l, fmt.Sprint(i%int64(keys))); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
			})
		}
	}
}
