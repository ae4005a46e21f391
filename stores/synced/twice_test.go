package synced_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Instances that reset a key at the same moment, or refund what another one
// resets, give the same hits back. Afterwards the key has its quota, and no hit
// more; and meanwhile no process admits more than the quota.
func TestHitsThatAreGivenBackTwice(t *testing.T) {
	const quota = 20
	hit := core.Hit{Rule: "r", Key: "k"}
	for _, interval := range []time.Duration{time.Second, 0} {
		for name, second := range map[string]func(t *testing.T, l *core.Limiter, own []core.Decision) error{
			"two resets": func(t *testing.T, l *core.Limiter, _ []core.Decision) error { return l.Reset(t.Context(), hit) },
			"a reset and refunds": func(t *testing.T, l *core.Limiter, own []core.Decision) error {
				for _, d := range own {
					if err := l.Adjust(t.Context(), d, 0); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			t.Run(fmt.Sprintf("%s, interval %v", name, interval), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newShared()
					stores, limiters := newNodes(t, b, 3, synced.Config{Interval: interval, Timeout: 10 * time.Second}, aligned(quota, day))
					var own []core.Decision
					for i := range 8 {
						d, err := limiters[i%2].Take(t.Context(), 1, hit)
						if err != nil || !d.Allowed {
							t.Fatalf("%v, %v", d, err)
						}
						if i%2 == 1 {
							own = append(own, d)
						}
					}
					time.Sleep(3 * time.Second) // both know of all
					b.set(func(b *shared) { b.latency = 10 * time.Millisecond })
					var wg sync.WaitGroup
					wg.Go(func() {
						if err := limiters[0].Reset(t.Context(), hit); err != nil {
							t.Error(err)
						}
					})
					wg.Go(func() {
						if err := second(t, limiters[1], own); err != nil {
							t.Error(err)
						}
					})
					wg.Wait()
					time.Sleep(5 * time.Second)
					if got := b.total(); got != 0 {
						t.Errorf("the backend has %d hits, want 0", got)
					}
					admitted := 0
					for range 10 {
						for _, l := range limiters {
							left(t, l, "k") // so that the next exchange asks for it
							time.Sleep(3 * interval)
							if take(t, l, "k") {
								admitted++
							}
							time.Sleep(interval) // the hit is pushed
						}
					}
					if admitted != quota {
						t.Errorf("%d admitted of a quota of %d", admitted, quota)
					}
					for _, s := range stores {
						_ = s.Close(context.Background())
					}
				})
			})
		}
	}
}

// While the backend has more refunds than hits, a process that exchanges just then
// takes that for no quota. Processes that end at once after a reset leave nothing
// behind that is below zero.
func TestResetsBeforeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 3, synced.Config{Interval: time.Second}, aligned(20, day))
		hit := core.Hit{Rule: "r", Key: "k"}
		for range 12 {
			take(t, limiters[0], "k")
		}
		time.Sleep(3 * time.Second)
		for _, l := range limiters {
			left(t, l, "k")
		}
		time.Sleep(3 * time.Second)
		for _, l := range limiters[:2] {
			if err := l.Reset(t.Context(), hit); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range stores {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if got := b.total(); got < 0 {
				t.Errorf("the backend has %d hits", got)
			}
		}
		if got := b.total(); got != 0 {
			t.Errorf("the backend has %d hits, want 0", got)
		}
	})
}
