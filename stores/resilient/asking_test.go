package resilient_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// Requests of one key overlap each other and the payments of the key's debt.
// Every hit is charged once: together, exactly the quota is admitted.
func TestOverlappingRequestsAreChargedOnce(t *testing.T) {
	for range 60 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			const quota = 150
			a := instances(t, 1, resilient.Config{Timeout: time.Minute, Failures: 1000}, rule("user", fixed(quota, 24*time.Hour), fixed(10*quota, 300*24*time.Hour)))[0]
			var mu sync.Mutex
			r := rand.New(rand.NewPCG(seed, 0))
			wait := func(most time.Duration) {
				mu.Lock()
				d := time.Duration(r.Int64N(int64(most)))
				mu.Unlock()
				time.Sleep(d)
			}
			a.link.slow.Store(func() { wait(400 * time.Millisecond) })
			var clients sync.WaitGroup
			admitted := make([]int, 5)
			for c := range admitted {
				clients.Go(func() {
					for range 20 {
						wait(time.Second)
						admitted[c] += a.admitted(1, alice)
					}
				})
			}
			for range 10 {
				wait(time.Second)
				a.link.fail(errRefused)
				wait(time.Second)
				a.link.fail(nil)
			}
			clients.Wait()
			time.Sleep(10 * time.Second)
			all := a.admitted(2*quota, alice)
			for _, n := range admitted {
				all += n
			}
			if all != quota {
				t.Errorf("seed %d: %d admitted, want %d", seed, all, quota)
			}
		})
	}
}

// What a short limit has admitted since an outage, while the hits of the outage
// were being charged to a long one, is not charged to the short one again.
func TestHitsDuringAPaymentAreChargedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{Timeout: time.Minute, Failures: 1000}, rule("user", fixed(5, time.Minute), fixed(100, 24*time.Hour)))[0]
		a.link.fail(errRefused)
		if n := a.admitted(5, alice); n != 5 {
			t.Fatalf("%d admitted in the outage, want 5", n)
		}
		time.Sleep(time.Minute)
		a.link.slow.Store(func() { time.Sleep(100 * time.Millisecond) })
		a.link.fail(nil)
		var requests sync.WaitGroup
		n := make([]int, 4)
		for i := range n {
			requests.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Millisecond)
				n[i] = a.admitted(1, alice)
			})
		}
		requests.Wait()
		if sum := n[0] + n[1] + n[2] + n[3] + a.admitted(3, alice); sum != 5 {
			t.Errorf("%d of the minute's 5 admitted after the outage", sum)
		}
		d, err := a.Peek(t.Context(), 0, alice)
		if err != nil || left(d, 24*time.Hour) != 90 {
			t.Errorf("%v, %v: want 90 left of the day's 100", d, err)
		}
	})
}

// A denial because of hits that are on their way to the store is decided in the process.
func TestADenialOfOwedHitsIsDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := instances(t, 1, resilient.Config{Failures: 100}, rule("user", fixed(3, time.Hour)))[0]
		a.link.fail(errRefused)
		if n := a.admitted(4, alice); n != 3 {
			t.Fatalf("%d admitted in the outage, want 3", n)
		}
		a.link.fail(nil)
		a.link.hang.Store(true)
		var payer sync.WaitGroup
		payer.Go(func() { a.admitted(1, alice) }) // charges the hits, and waits for the store
		synctest.Wait()
		a.link.hang.Store(false)
		d, err := a.Take(context.Background(), 1, alice)
		if err != nil || d.Allowed || !d.Degraded {
			t.Errorf("%v, %v: want a denial without the shared counters", d, err)
		}
		close(a.link.end)
		payer.Wait()
		time.Sleep(time.Second)
		if d, err := a.Take(context.Background(), 1, alice); err != nil || d.Allowed || d.Degraded {
			t.Errorf("%v, %v: want a denial by the store, which knows the hits", d, err)
		}
	})
}

// left returns the hits that a decision's limit with this window has left.
func left(d core.Decision, window time.Duration) int64 {
	for l := range d.Limits() {
		if l.Limit.Window == window {
			return l.Remaining
		}
	}
	return -1
}
