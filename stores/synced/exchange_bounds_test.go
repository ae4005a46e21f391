package synced_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// recorder notes every push, and whether two ran at once.
type recorder struct {
	*shared
	mu      sync.Mutex
	batches []synced.Batch
	running int
	overlap bool
}

func (r *recorder) PushDiffs(ctx context.Context, b synced.Batch) ([]int64, error) {
	r.mu.Lock()
	r.batches = append(r.batches, b)
	r.running++
	r.overlap = r.overlap || r.running > 1
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.running--
		r.mu.Unlock()
	}()
	return r.shared.PushDiffs(ctx, b)
}

// seen waits until nothing runs and returns the batches.
func (r *recorder) seen() []synced.Batch {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

// noCounterTwice checks that no batch has two differences of one counter.
func noCounterTwice(t *testing.T, batches []synced.Batch) {
	t.Helper()
	for _, b := range batches {
		counters := map[synced.Diff]bool{}
		for _, d := range b.Diffs {
			d.Diff = 0
			if counters[d] {
				t.Errorf("a batch has %v twice", d)
			}
			counters[d] = true
		}
	}
}

// A batch that fails is pushed again as it is, before any other and under its
// number; nothing else is pushed meanwhile, and no more often than every Interval.
func TestABatchIsTriedAgainAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{shared: newShared()}
		s := newStore(t, r, synced.Config{Interval: time.Second, Log: quiet})
		l := newLimiter(t, s, aligned(1_000_000, day))
		r.set(func(b *shared) { b.down = true })
		hits := manyKeys(t, l, 2500)
		for range 50 {
			take(t, l, "1")
			hits++
			time.Sleep(200 * time.Millisecond)
		}
		batches := r.seen()
		first := batches[0]
		if n := len(batches); n < 9 || n > 12 {
			t.Errorf("%d tries in 10 s at an Interval of 1 s", n)
		}
		for i, b := range batches {
			if b.Sequence != first.Sequence || !slices.Equal(b.Diffs, first.Diffs) {
				t.Errorf("try %d is of another batch: %d, %d", i, b.Sequence, first.Sequence)
			}
		}
		r.set(func(b *shared) { b.down = false })
		time.Sleep(3 * time.Second)
		batches = r.seen()
		if got := r.total(); got != hits || r.overlap {
			t.Errorf("the backend has %d hits, want %d; two pushes at once: %v", got, hits, r.overlap)
		}
		for i, b := range batches[1:] {
			if len(b.Diffs) > 1000 || b.Sequence < batches[i].Sequence {
				t.Errorf("batch %d has %d differences and number %d after %d", i+1, len(b.Diffs), b.Sequence, batches[i].Sequence)
			}
		}
		noCounterTwice(t, batches)
		_ = s.Close(context.Background())
	})
}

// A backend that never answers holds an exchange up for Timeout.
func TestAPushHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		s := newStore(t, b, synced.Config{Interval: time.Second, Timeout: 300 * time.Millisecond, Log: quiet})
		l := newLimiter(t, s, aligned(1000, day))
		take(t, l, "k")
		b.set(func(b *shared) { b.latency = time.Hour })
		began := time.Now()
		if err := s.Sync(t.Context()); err == nil {
			t.Error("no error")
		}
		if d := time.Since(began); d != 300*time.Millisecond {
			t.Errorf("it took %v, want one Timeout", d)
		}
		b.set(func(b *shared) { b.latency = 0 })
		if err := s.Close(context.Background()); err != nil || b.total() != 1 {
			t.Errorf("%v; the backend has %d hits", err, b.total())
		}
	})
}

// A charge counts although the client hangs up: before the decision, or while
// the backend is asked.
func TestTheClientHangsUp(t *testing.T) {
	for _, interval := range []time.Duration{0, time.Second, -1} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			b.latency = 100 * time.Millisecond
			s := newStore(t, b, synced.Config{Interval: interval, Log: quiet})
			l := newLimiter(t, s, aligned(10, day))
			for _, after := range []time.Duration{0, 50 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(context.Background(), after)
				d, err := l.Take(ctx, 2, core.Hit{Rule: "r", Key: "k"})
				cancel()
				if after > 0 && (err != nil || !d.Allowed) {
					t.Errorf("interval %v: %v, %v", interval, d.Allowed, err)
				}
			}
			if got := left(t, l, "k"); got != 6 && interval != 0 || got > 8 {
				t.Errorf("interval %v: %d left after 2 takes of 2 from 10", interval, got)
			}
			left := left(t, l, "k")
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if got := b.total(); interval >= 0 && got != 10-left {
				t.Errorf("interval %v: the backend has %d hits, and %d were left of 10", interval, got, left)
			}
		})
	}
}
