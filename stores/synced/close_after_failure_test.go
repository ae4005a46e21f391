package synced_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Batches of hits and refunds that an exchange has made and could not push are
// pushed by Close, together with what has changed since.
func TestCloseAfterAnExchangeOfRefundsHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		r := &recorder{shared: b}
		s := newStore(t, r, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		const keys = 1500
		var first []core.Decision
		for i := range keys {
			d, err := l.Take(t.Context(), 7, core.Hit{Rule: "r", Key: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, d)
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, d := range first {
			if err := l.Adjust(t.Context(), d, 0); err != nil {
				t.Fatal(err)
			}
			take(t, l, fmt.Sprint(i))
		}
		b.set(func(b *shared) { b.down = true })
		if err := s.Sync(t.Context()); err == nil {
			t.Fatal("no error")
		}
		for i := range keys {
			take(t, l, fmt.Sprint(i))
		}
		b.set(func(b *shared) { b.down = false })
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := b.total(); got != 2*keys {
			t.Errorf("the backend has %d hits, want %d", got, 2*keys)
		}
		for c, n := range b.counts {
			if n != 2 {
				t.Errorf("%s has %d hits, want 2", c.Key, n)
			}
		}
		noCounterTwice(t, r.seen())
	})
}

// Close pushes the hits of an exchange that failed two windows ago.
func TestCloseLongAfterAnExchangeHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, time.Minute))
		const keys = 1200
		for i := range keys {
			take(t, l, fmt.Sprint(i))
		}
		b.set(func(b *shared) { b.down = true })
		if err := s.Sync(t.Context()); err == nil {
			t.Fatal("no error")
		}
		time.Sleep(2 * time.Minute)
		for i := range keys {
			take(t, l, fmt.Sprint(i))
		}
		b.set(func(b *shared) { b.down = false })
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if got := b.total(); got != 2*keys {
			t.Errorf("the backend has %d hits, want %d", got, 2*keys)
		}
	})
}
