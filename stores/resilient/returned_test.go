package resilient_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Hits that come back while the hits of an outage are charged are not taken for hits
// that the store has lost: the store is not charged with them again.
func TestHitsThatComeBackWhileTheHitsOfAnOutageAreCharged(t *testing.T) {
	type giveBack func(t *testing.T, i *summed, b *core.Batch)
	ways := map[string]giveBack{
		"refund": func(t *testing.T, i *summed, b *core.Batch) {
			if err := i.Refund(t.Context(), b); err != nil {
				t.Error(err)
			}
		},
		"grant": func(t *testing.T, i *summed, b *core.Batch) {
			if err := i.Bound.(core.Granter).Grant(t.Context(), b); err != nil {
				t.Error(err)
			}
		},
	}
	moments := map[string]func(t *testing.T, i *summed, giveBack func()){
		"after the process has counted": func(_ *testing.T, i *summed, giveBack func()) {
			var begun atomic.Bool
			var wg sync.WaitGroup
			i.link.slow.Store(func() {
				if begun.CompareAndSwap(false, true) {
					wg.Go(giveBack)
					time.Sleep(time.Millisecond)
				}
			})
			time.Sleep(time.Second)
			wg.Wait()
		},
		"before the process counts": func(_ *testing.T, i *summed, giveBack func()) {
			i.link.given.Store(func() { time.Sleep(time.Second) })
			giveBack()
		},
	}
	for way, giveBack := range ways {
		for moment, run := range moments {
			t.Run(way+" "+moment, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSums(t, 1, true, resilient.Config{Timeout: time.Hour, Failures: 1 << 30}, fixed(6, year))
					i := s.instances[0]
					before := s.take(0, "k", 2, 0)
					i.link.fail(errRefused)
					if b := s.take(0, "k", 3, 0); !b.Allowed || !b.Degraded {
						t.Fatalf("in the outage: %+v", b)
					}
					i.link.fail(nil)
					run(t, i, func() { giveBack(t, i, before) })
					time.Sleep(5 * time.Second)
					s.expect("in the end", "k", 3)
				})
			})
		}
	}
}
