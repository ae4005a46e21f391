package resilient_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Many callers at a time use a quota up. The hits of some are denied by the store
// while they keep others out of the process's own counters. The process counts all
// that it has admitted nevertheless: in the outage that follows it admits what is
// left of its share, and no more.
func TestConcurrentCallersUseUpTheShare(t *testing.T) {
	t.Parallel()
	lockout := core.Lockout{First: 24 * time.Hour, Factor: 1, Max: 24 * time.Hour, Decay: 24 * time.Hour}
	for name, limits := range map[string][]core.Limit{
		"fixed":   {fixed(24, 24*time.Hour)},
		"sliding": {{Quota: 24, Window: 24 * time.Hour}},
		"log":     {{Quota: 24, Window: 24 * time.Hour, Algorithm: core.SlidingLog}},
		"lockout": {{Quota: 24, Window: 24 * time.Hour, Algorithm: core.FixedWindow, Lockout: lockout}},
		"two":     {fixed(24, 24*time.Hour), fixed(24, 48*time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 2, 4} {
				for range 10 {
					concurrentCallers(t, n, rand.Uint64(), limits...)
				}
			}
		})
	}
}

func concurrentCallers(t *testing.T, n int, seed uint64, limits ...core.Limit) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 24
		share := 24 / n
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(seed, 0))
		wait := func() {
			mu.Lock()
			d := time.Duration(r.Int64N(int64(100 * time.Millisecond)))
			mu.Unlock()
			time.Sleep(d)
		}
		all := instances(t, n, resilient.Config{Instances: n, Timeout: time.Minute}, rule("user", limits...), rule("other", core.PerHour(1_000_000)))
		before, during := make([]int, n), make([]int, n)
		var counted sync.Mutex
		var running sync.WaitGroup
		for i, a := range all {
			a.link.slow.Store(wait)
			for range callers {
				running.Go(func() {
					for range 4 {
						wait()
						got := a.admitted(1, alice, core.Hit{Rule: "other", Key: "x"})
						counted.Lock()
						before[i] += got
						counted.Unlock()
					}
				})
			}
		}
		running.Wait()
		for i, a := range all {
			a.link.fail(errRefused)
			during[i] = a.admitted(50, alice)
			if left := max(0, share-before[i]); during[i] > left {
				t.Errorf("seed %d: instance %d of %d: %d admitted in the outage after %d, of a share of %d", seed, i, n, during[i], before[i], share)
			}
			// What the store has charged is not charged to it again.
			if d, err := a.Peek(t.Context(), 0, core.Hit{Rule: "other", Key: "x"}); err != nil || !d.Degraded {
				t.Errorf("%v, %v: want a decision of the process", d, err)
			} else if want := int64((1_000_000+n-1)/n - before[i]); d.Remaining != want {
				t.Errorf("seed %d: instance %d of %d: %d left of the other key, want %d", seed, i, n, d.Remaining, want)
			}
		}
	})
}

// Hits of which the store's answer is lost fill the process's share. The store has
// allowed as many others meanwhile, which have come later: these are the share.
func TestHitsThatTheStoreHasAllowedComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{Instances: 2, Timeout: time.Minute}, rule("user", fixed(8, 24*time.Hour)))[0]
		var waiting sync.WaitGroup
		lost := make([]int, 4)
		a.link.hang.Store(true)
		for i := range lost {
			waiting.Go(func() { lost[i] = a.admitted(1, alice) })
		}
		synctest.Wait()
		a.link.hang.Store(false)
		if n := a.admitted(3, alice); n != 3 {
			t.Fatalf("the store has allowed %d of 3", n)
		}
		a.link.fail(errRefused)
		close(a.link.end)
		waiting.Wait()
		if n := lost[0] + lost[1] + lost[2] + lost[3]; n != 1 {
			t.Errorf("%d admitted in the outage after 3, of a share of 4", n)
		}
		if n := a.admitted(10, alice); n != 0 {
			t.Errorf("%d admitted when the share was used up", n)
		}
		a.link.fail(nil)
		time.Sleep(settled)
		if n := a.admitted(10, alice); n != 4 {
			t.Errorf("%d admitted after the outage, want the 4 that are left of 8", n)
		}
	})
}
