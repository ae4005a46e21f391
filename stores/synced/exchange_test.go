package synced_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// Hits of a window's last moments reach the backend and the other processes
// after the window's end, although both have long exchanged the key.
func TestTheLastHitsOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 2, synced.Config{Interval: 5 * time.Second}, aligned(100, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		for range 59 {
			left(t, limiters[0], "k")
			left(t, limiters[1], "k")
			time.Sleep(time.Second)
		}
		for range 60 {
			take(t, limiters[0], "k")
		}
		for range 31 { // to the middle of the next window
			time.Sleep(time.Second)
			left(t, limiters[0], "k")
			left(t, limiters[1], "k")
		}
		for i, l := range limiters {
			if got := left(t, l, "k"); got != 70 {
				t.Errorf("process %d has %d left, want 70", i, got)
			}
		}
		if got := b.total(); got != 60 {
			t.Errorf("the backend has %d hits, want 60", got)
		}
	})
}

// Processes that start together do not exchange together.
func TestTheStartIsJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 50, synced.Config{Interval: time.Second}, aligned(1000, time.Hour))
		for _, l := range limiters {
			take(t, l, "k")
		}
		last, most := 0, 0
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			b.set(func(b *shared) { most, last = max(most, b.pushes-last), b.pushes })
		}
		if most > 25 {
			t.Errorf("%d of 50 exchanged within a tenth of the interval", most)
		}
	})
}

// The hits of a window are pushed until two lengths after its end.
func TestUntilWhenHitsArePushed(t *testing.T) {
	for after, want := range map[time.Duration]int64{0: 1, 3*time.Minute - time.Microsecond: 1, 3 * time.Minute: 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
			s := newStore(t, b, synced.Config{Interval: time.Hour, Log: quiet, Clock: clock.Now})
			take(t, newLimiter(t, s, aligned(10, time.Minute)), "k")
			clock.Advance(after)
			others := int64(0)
			if want > 0 {
				others = manyKeys(t, newLimiterNamed(t, s, "others", aligned(1000, time.Minute)), 500) // they evict nothing
			}
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.total() - others; got != want {
				t.Errorf("%v after the window began: the backend has %d hits, want %d", after, got, want)
			}
		})
	}
}

// Long after a window has begun, a key in use takes part in an exchange with one counter.
func TestTheWindowBeforeIsNotAskedForAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(100, time.Hour))
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(90 * time.Minute)))
		for i := range 20 {
			take(t, limiters[0], "k")
			time.Sleep(time.Second)
			synctest.Wait()
			b.set(func(b *shared) {
				if want := i + 2; b.asked != want { // the first exchange asks for the window before, too
					t.Errorf("%d counters in %d exchanges, want %d", b.asked, i+1, want)
				}
			})
		}
	})
}

// A key that has dropped out of the exchanges takes part with both windows when it is used again.
func TestAKeyThatIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, limiters := newNodes(t, newShared(), 2, synced.Config{Interval: time.Second}, aligned(100, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		take(t, limiters[1], "k")
		time.Sleep(50 * time.Second)
		for range 59 {
			take(t, limiters[0], "k")
		}
		time.Sleep(37 * time.Second)
		left(t, limiters[1], "k")
		time.Sleep(3 * time.Second) // half of the next window
		if got := left(t, limiters[1], "k"); got != 70 {
			t.Errorf("%d left, want 70: half of the 60 hits count", got)
		}
	})
}

// Hits that are given back long after their window has ended are given back in it.
func TestARefundInTheNextWindow(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			b := newShared()
			_, limiters := newNodes(t, b, 1, synced.Config{Interval: interval}, aligned(100, time.Minute))
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 50*time.Second)))
			d, err := limiters[0].Take(t.Context(), 40, core.Hit{Rule: "r", Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			old, _ := limiters[0].Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
			time.Sleep(30 * time.Second)
			take(t, limiters[0], "k")
			time.Sleep(2 * time.Second)
			if err := limiters[0].Adjust(t.Context(), d, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Minute)
			take(t, limiters[0], "k")
			if err := limiters[0].Adjust(t.Context(), old, 0); err != nil { // its window does not count any more
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			if got := b.total(); got != 3 {
				t.Errorf("the backend has %d hits, want 3", got)
			}
		})
	}
}

// recorder notes every push, and whether two ran at once.
type recorder struct {
	*shared
	mu      sync.Mutex
	batches []synced.Batch
	running int
	overlap bool
	late    bool // a batch has another time than the clock of the store, an hour ahead
}

func (r *recorder) PushDiffs(ctx context.Context, b synced.Batch) ([]int64, error) {
	r.mu.Lock()
	r.batches = append(r.batches, b)
	r.running++
	r.overlap, r.late = r.overlap || r.running > 1, r.late || b.At.UnixMicro() != time.Now().Add(time.Hour).UnixMicro()
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
		clock := func() time.Time { return time.Now().Add(time.Hour) }
		l := newLimiter(t, newStore(t, r, synced.Config{Interval: time.Second, Log: quiet, Clock: clock}), aligned(1_000_000, day))
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
		if got := r.total(); got != hits || r.overlap || r.late {
			t.Errorf("the backend has %d hits, want %d; two pushes at once: %v; with another time: %v", got, hits, r.overlap, r.late)
		}
		for i, b := range batches[1:] {
			if len(b.Diffs) > 1000 || b.Sequence < batches[i].Sequence {
				t.Errorf("batch %d has %d differences and number %d after %d", i+1, len(b.Diffs), b.Sequence, batches[i].Sequence)
			}
		}
		noCounterTwice(t, batches)
	})
}

// A charge counts although the client hangs up: before the decision, or while the backend is asked.
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

func TestSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		stores, limiters := newNodes(t, b, 2, synced.Config{Interval: 365 * day}, aligned(10, day))
		began := time.Now()
		for round := range 3 {
			for range 2 {
				take(t, limiters[0], "k")
				take(t, limiters[0], "other")
			}
			for _, key := range []string{"k", "other"} { // what it has heard of the key before
				if got := left(t, limiters[1], key); got != int64(10-2*round) {
					t.Errorf("round %d: before Sync %d are left of %s, want %d", round, got, key, 10-2*round)
				}
			}
			for _, s := range stores {
				if err := s.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, key := range []string{"k", "other"} {
				if got := left(t, limiters[1], key); got != int64(10-2*(round+1)) {
					t.Errorf("round %d: after Sync %d are left of %s, want %d", round, got, key, 10-2*(round+1))
				}
			}
			b.set(func(b *shared) { b.asked = 0 })
			for range 5 { // nobody asks for the keys, and they drop out after three exchanges
				_ = stores[1].Sync(t.Context())
			}
			if b.asked != 3*2*2 {
				t.Errorf("round %d: %d windows were exchanged, want those of two keys three times", round, b.asked)
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
		go stores[0].Sync(t.Context()) //nolint:errcheck // it keeps the next one waiting
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := stores[0].Sync(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Millisecond {
			t.Errorf("a context that ends during another exchange: %v after %v", err, time.Since(began))
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
			s := newStore(t, newShared(), synced.Config{Interval: interval, Windows: []time.Duration{time.Minute}})
			if err := s.Sync(t.Context()); err != nil {
				t.Errorf("interval %v: %v", interval, err)
			}
			l := newLimiter(t, s, aligned(10, day))
			_ = s.Close(t.Context())
			_, err := s.Rate(t.Context(), "k", time.Minute, 0)
			if _, taken := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrClosed) || !errors.Is(taken, core.ErrClosed) {
				t.Errorf("interval %v: after Close, Rate: %v; Take: %v", interval, err, taken)
			}
		}
	})
}
