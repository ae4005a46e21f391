package synced_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// A node that has never used a key resets it: the nodes that count for it allow
// it again after their next exchange.
func TestResetByANodeThatHasNotUsedTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 3, synced.Config{Interval: time.Second}, aligned(20, day))
		for range 10 {
			take(t, limiters[0], "k")
			take(t, limiters[1], "k")
		}
		time.Sleep(3 * time.Second)
		for i := range 2 {
			if got := left(t, limiters[i], "k"); got != 0 {
				t.Fatalf("node %d has %d left", i, got)
			}
		}
		hit := core.Hit{Rule: "r", Key: "k"}
		if err := limiters[2].Reset(t.Context(), hit); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 20 {
				t.Errorf("node %d has %d left of 20 after the reset", i, got)
			}
		}
		if got := b.total(); got != 0 {
			t.Errorf("the backend has %d hits", got)
		}
		b.set(func(b *shared) { b.down = true })
		if err := limiters[2].Reset(t.Context(), hit); !errors.Is(err, errDown) {
			t.Errorf("while the backend is down: %v", err)
		}
		b.set(func(b *shared) { b.down = false })
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
	})
}

// A reset forgets what is left of the hits, also if this process has not used the
// key and others have refunded some.
func TestResetAfterRefundsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 2, synced.Config{Interval: time.Second}, aligned(20, day))
		hit := core.Hit{Rule: "r", Key: "k"}
		for range 6 {
			take(t, limiters[0], "k")
		}
		d, err := limiters[0].Take(t.Context(), 4, hit)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := limiters[0].Adjust(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if err := limiters[1].Reset(t.Context(), hit); err != nil {
			t.Fatal(err)
		}
		for _, l := range limiters {
			left(t, l, "k") // so that the next exchange asks for it
		}
		time.Sleep(3 * time.Second)
		b.set(func(b *shared) {
			for c, n := range b.counts {
				if n != 0 {
					t.Errorf("%s: %d, want none", c.Key, n)
				}
			}
		})
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 20 {
				t.Errorf("node %d has %d left of 20 after the reset", i, got)
			}
		}
		for _, s := range stores {
			_ = s.Close(context.Background())
		}
	})
}

// Processes that reset a key at the same moment, or refund what another one resets, give
// the same hits back. No counter falls below 0 for that: afterwards the key has its quota,
// and no hit more.
func TestHitsThatAreGivenBackTwice(t *testing.T) {
	const quota = 20
	hit := core.Hit{Rule: "r", Key: "k"}
	for _, interval := range []time.Duration{time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			stores, limiters := newNodes(t, b, 3, synced.Config{Interval: interval}, aligned(quota, day))
			var own []core.Decision
			for i := range 8 {
				d, err := limiters[i%2].Take(t.Context(), 1, hit)
				if err != nil || !d.Allowed {
					t.Fatalf("%v, %v", d, err)
				}
				own = append(own, d)
			}
			time.Sleep(3 * time.Second) // all know of all
			for i, l := range limiters[:2] {
				if err := l.Reset(t.Context(), hit); err != nil {
					t.Fatal(err)
				}
				if err := l.Adjust(t.Context(), own[i], 0); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Second)
			if got := b.total(); got != 0 {
				t.Errorf("interval %v: the backend has %d hits, want 0", interval, got)
			}
			allowed := 0
			for range 10 {
				for _, l := range limiters {
					left(t, l, "k") // so that the next exchange asks for it
					time.Sleep(3 * interval)
					if take(t, l, "k") {
						allowed++
					}
					time.Sleep(interval) // the hit is pushed
				}
			}
			if allowed != quota {
				t.Errorf("interval %v: %d allowed of a quota of %d", interval, allowed, quota)
			}
			for _, s := range stores {
				_ = s.Close(context.Background())
			}
		})
	}
}
