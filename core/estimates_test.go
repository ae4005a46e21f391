package core_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// 1,000 requests at once reserve 10 and use 0 to 30. What is stored is what was used, and no more is
// allowed than the estimates were wrong by.
func TestManyEstimatesAtOnce(t *testing.T) {
	const quota, reserve, most = 3000, 10, 30
	seed := rand.Uint64()
	for _, algorithm := range []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.TokenBucket} {
		// peak is the most that have run at a time, from before the take to after the settlement.
		var used, running, peak, worst atomic.Int64
		l := newLimiter(t, core.Config{Rules: []core.Rule{{
			Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: quota, Window: time.Hour, Algorithm: algorithm}},
			Cost: func(core.Request) (int64, error) {
				raise(&peak, running.Add(1))
				return reserve, nil
			},
		}}}, newClock())
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				d := l.Check(&request{})
				defer running.Add(-1)
				if !d.Allowed {
					return
				}
				actual := r.Int64N(most + 1)
				d.SetCost(actual)
				before := used.Add(actual) - actual
				raise(&worst, before+actual-quota-peak.Load()*(most-reserve))
				l.Settle(&request{}, d, core.Outcome{Status: 200})
			})
		}
		wg.Wait()
		if got, want := left(t, l, "r", "k"), max(0, quota-used.Load()); got != want {
			t.Errorf("%v, seed %d: %d left, and %d of %d were used", algorithm, seed, got, used.Load(), quota)
		}
		// A request is denied while others have reserved what they do not use in the end.
		if used.Load() < quota-peak.Load()*reserve {
			t.Errorf("%v, seed %d: only %d were used", algorithm, seed, used.Load())
		}
		if worst.Load() > 0 {
			t.Errorf("%v, seed %d: %d of %d were used, %d above the error of %d estimates", algorithm, seed, used.Load(), quota, worst.Load(), peak.Load())
		}
	}
}

// raise sets a number to n if it is lower.
func raise(a *atomic.Int64, n int64) {
	for was := a.Load(); n > was && !a.CompareAndSwap(was, n); was = a.Load() {
	}
}
