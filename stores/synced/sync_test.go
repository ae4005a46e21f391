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

func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 2, synced.Config{Interval: 365 * day}, aligned(10, day))
		began := time.Now()
		if got := left(t, limiters[1], "k"); got != 10 { // a key that it knows, with no hits
			t.Errorf("%d left", got)
		}
		for round := range 3 {
			for range 2 {
				take(t, limiters[0], "k")
				take(t, limiters[0], "unheard of")
			}
			for _, s := range stores {
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, key := range []string{"k", "unheard of"} {
				if got := left(t, limiters[1], key); got != int64(10-2*(round+1)) {
					t.Errorf("round %d: after Sync %d are left of %s, want %d", round, got, key, 10-2*(round+1))
				}
			}
			for range 5 { // nobody asks for the keys, and they drop out of the exchange
				_ = stores[1].Sync(t.Context())
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v", d)
		}
		b.set(func(b *shared) { b.down = true })
		if err := stores[0].Sync(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("while the backend is down: %v", err)
		}
		b.set(func(b *shared) { b.down, b.latency = false, time.Minute })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		take(t, limiters[0], "k")
		if err := stores[0].Sync(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Millisecond {
			t.Errorf("a context that ends: %v after %v", err, time.Since(began))
		}
		b.set(func(b *shared) { b.latency = 0 })
		for _, s := range stores {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if err := s.Sync(t.Context()); !errors.Is(err, core.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		for _, interval := range []time.Duration{-1, 0} {
			if err := newStore(t, newShared(), synced.Config{Interval: interval}).Sync(t.Context()); err != nil {
				t.Errorf("interval %v: %v", interval, err)
			}
		}
	})
}

// Several that call Sync at once, and Close between them, all return.
func TestSyncConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		b.latency = 10 * time.Millisecond
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(100, day))
		done := make(chan error)
		for range 20 {
			go func() {
				take(t, l, "k")
				done <- s.Sync(context.Background())
			}()
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		for range 15 {
			if err := <-done; err != nil && !errors.Is(err, core.ErrClosed) && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if got := b.total(); got != 20 {
			t.Errorf("the backend has %d hits, want 20", got)
		}
	})
}
