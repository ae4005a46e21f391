package synced_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// fetches counts how often counters are fetched.
type fetches struct {
	*shared
	n atomic.Int64
}

func (f *fetches) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	f.n.Add(1)
	return f.shared.Counters(ctx, namespace, windows, at)
}

// Without exchanges nothing is fetched: neither when a limiter is opened or
// changed, nor by Increment.
func TestNothingIsFetchedWithoutExchanges(t *testing.T) {
	for _, interval := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			f := &fetches{shared: newShared()}
			s := newStore(t, f, synced.Config{Interval: interval, Windows: []time.Duration{time.Minute}, Log: quiet})
			l := newLimiter(t, s, aligned(10, day))
			config := core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(10, time.Hour)}}}}
			if err := l.Reconfigure(config); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Increment(t.Context(), "k", time.Minute, 1); err != nil {
				t.Fatal(err)
			}
			if n := f.n.Load(); n != 0 {
				t.Errorf("interval %v: %d fetches, want none", interval, n)
			}
		})
	}
}

// A process that starts late knows the hits of the window before, too.
func TestTheWindowBeforeIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, early := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(100, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 50*time.Second)))
		for range 60 {
			take(t, early[0], "k")
		}
		time.Sleep(40 * time.Second) // half of the next window
		_, late := newNodes(t, b, 1, synced.Config{Interval: time.Hour}, aligned(100, time.Minute))
		if got := left(t, late[0], "k"); got != 70 {
			t.Errorf("%d left, want 70: half of the 60 hits count", got)
		}
	})
}

// The windows that new rules bring are fetched at once, those that are known are not fetched again.
func TestNewWindowsOfALimiterAreFetchedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fetches{shared: newShared()}
		s := newStore(t, f, synced.Config{Interval: time.Hour, Log: quiet})
		l := newLimiter(t, s, aligned(10, day))
		f.n.Store(0)
		for _, row := range []struct {
			window time.Duration
			want   int64
		}{{time.Hour, 1}, {day, 0}, {time.Minute, 1}} {
			if err := l.Reconfigure(core.Config{Name: "api", Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(20, row.window)}}}}); err != nil {
				t.Fatal(err)
			}
			if got := f.n.Swap(0); got != row.want {
				t.Errorf("%v: %d fetches, want %d", row.window, got, row.want)
			}
		}
		_ = s.Close(context.Background())
	})
}
