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

// A node that has never used a key resets it: the nodes that count for it admit
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

// A reset refunds what is left of the hits, also if this process has not used the
// key and others have refunded some: the refunds of all are as many as the hits.
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
				if n != 10 && n != -10 {
					t.Errorf("%s: %d, want 10 hits and 10 refunds", c.Key, n)
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
