package synced_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/synced"
)

// Increment by 0 and Rate only read: in a full table they evict no counter, and
// Increment by more does.
func TestReadingARateEvictsNothing(t *testing.T) {
	for _, interval := range []time.Duration{time.Hour, -1} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, newShared(), synced.Config{Interval: interval, MaxKeys: 64, Log: quiet})
			count := func(key string, n int64) {
				if _, err := s.Increment(t.Context(), key, time.Minute, n); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3000 {
				count(fmt.Sprint("used", i), 1)
			}
			before := s.Stats()
			if before.Keys != 64 || before.Lost != 3000-64 {
				t.Fatalf("%+v, want a full table", before)
			}
			for i := range 1000 {
				count(fmt.Sprint("read", i), 0)
				if _, err := s.Rate(t.Context(), fmt.Sprint("read", i), time.Minute, 1); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Stats(); got != before {
				t.Errorf("interval %v: after reading %+v, before %+v", interval, got, before)
			}
		})
	}
}

// between is a backend at which something happens after the first of the four
// questions for the counters of a rate.
type between struct {
	*shared
	questions int
	then      func()
}

func (b *between) Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error) {
	n, err := b.shared.Window(ctx, namespace, key, start, window)
	if b.questions++; b.questions == 1 {
		b.then()
	}
	return n, err
}

// A hit and its refund by another process, while a process asks for the counters of a
// rate, can make the rate too high, never too low.
func TestARefundWhileARateIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := newShared()
		b := &between{shared: backend}
		s := newStore(t, b, synced.Config{Log: quiet})
		if _, err := s.Increment(t.Context(), "k", day, 5); err != nil {
			t.Fatal(err)
		}
		b.then = func() {
			backend.set(func(sh *shared) {
				for c, n := range maps.Clone(sh.counts) {
					if n > 0 {
						sh.counts[c] += 3
						c.Key += "-" // the counter of the refunds
						sh.counts[c] -= 3
					}
				}
			})
		}
		if got, err := s.Rate(t.Context(), "k", day, 0); err != nil || got < 5 || b.questions != 4 {
			t.Errorf("%v, %v after %d questions: want 5 or more after 4", got, err, b.questions)
		}
	})
}
