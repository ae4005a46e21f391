package synced_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// With Interval 0, processes together allow no more than the quota.
func TestThrough(t *testing.T) {
	b := newShared()
	_, limiters := newNodes(t, b, 4, synced.Config{}, aligned(20, time.Hour))
	var allowed atomic.Int64
	done := make(chan bool)
	for _, l := range limiters {
		for range 40 {
			go func() {
				d, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					allowed.Add(1)
				}
				done <- true
			}()
		}
	}
	for range 160 {
		<-done
	}
	if n := allowed.Load(); n > 20 || n < 10 {
		t.Errorf("%d of 160 allowed, want at most 20", n)
	}
	if got := b.total(); got != allowed.Load() {
		t.Errorf("the backend has %d hits, %d were allowed", got, allowed.Load())
	}
	for range 30 {
		take(t, limiters[0], "k")
	}
	if got := b.total(); got != 20 {
		t.Errorf("in the end the backend has %d hits, want 20", got)
	}
	b.set(func(b *shared) { b.down = true })
	if _, err := limiters[0].Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, errDown) {
		t.Errorf("without the backend: %v", err)
	}
}

// With Interval 0, hits of the window before can be refunded and reset too, and
// are then refunded once, even if two processes reset a key at the same moment.
func TestThroughInTheNextWindow(t *testing.T) {
	hit := core.Hit{Rule: "r", Key: "k"}
	for name, row := range map[string]struct {
		giveBack func(t *testing.T, limiters []*core.Limiter, d core.Decision) error
		hits     int64 // that are left in the backend
	}{
		"nothing": {func(*testing.T, []*core.Limiter, core.Decision) error { return nil }, 60},
		"a refund": {func(t *testing.T, limiters []*core.Limiter, d core.Decision) error {
			return limiters[1].Adjust(t.Context(), d, 0)
		}, 20},
		"a reset": {func(t *testing.T, limiters []*core.Limiter, _ core.Decision) error {
			return limiters[1].Reset(t.Context(), hit)
		}, 0},
		"two resets at once": {func(t *testing.T, limiters []*core.Limiter, _ core.Decision) error {
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := limiters[0].Reset(t.Context(), hit); err != nil {
					t.Error(err)
				}
			})
			err := limiters[1].Reset(t.Context(), hit)
			wg.Wait()
			return err
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared()
				b.latency = 10 * time.Millisecond
				_, limiters := newNodes(t, b, 2, synced.Config{}, aligned(100, time.Minute))
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 50*time.Second)))
				if _, err := limiters[0].Take(t.Context(), 20, hit); err != nil {
					t.Fatal(err)
				}
				d, err := limiters[0].Take(t.Context(), 40, hit)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(90 * time.Second)))
				if err := row.giveBack(t, limiters, d); err != nil {
					t.Fatal(err)
				}
				if got := b.total(); got != row.hits {
					t.Errorf("the backend has %d hits, want %d", got, row.hits)
				}
				if got, want := left(t, limiters[0], "k"), 100-row.hits/2; got != want && got != want+1 {
					t.Errorf("%d left just after the middle of the window, want %d", got, want)
				}
			})
		})
	}
}

func TestAFailureWithoutAnIntervalIsCounted(t *testing.T) {
	b := newShared()
	s := newStore(t, b, synced.Config{Log: quiet})
	l := newLimiter(t, s, aligned(10, time.Hour))
	b.set(func(b *shared) { b.down = true })
	if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "r", Key: "k"}); err == nil {
		t.Error("no error")
	}
	if got := s.Stats().Failed; got != 1 {
		t.Errorf("%d failures are counted, want 1", got)
	}
}
