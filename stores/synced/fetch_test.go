package synced_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/synced"
)

// fetches notes when counters are fetched, and fails if it is told to.
type fetches struct {
	*shared
	mu   sync.Mutex
	at   []time.Time
	fail bool
}

func (f *fetches) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	return func(yield func(synced.Counter, error) bool) {
		f.mu.Lock()
		f.at = append(f.at, time.Now())
		fail := f.fail
		f.mu.Unlock()
		if fail {
			yield(synced.Counter{}, errDown)
			return
		}
		f.shared.Counters(ctx, namespace, windows, at)(yield)
	}
}

func (f *fetches) failing(fail bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// seen returns the times of the fetches since the last call.
func (f *fetches) seen() []time.Time {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.at
	f.at = nil
	return at
}

// A fetch that fails is tried again after an Interval, and then after twice as
// long each time, up to a minute. After a fetch that works, the pauses begin
// anew.
func TestThePausesBetweenFailedFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fetches{shared: newShared(), fail: true}
		s := newStore(t, f, synced.Config{Interval: time.Second, Windows: []time.Duration{day}, Log: quiet})
		for _, round := range []time.Duration{day, time.Hour} {
			newLimiterNamed(t, s, round.String(), aligned(10, round))
			time.Sleep(5 * time.Minute)
			at := f.seen()
			want := []int{2, 4, 8, 16, 32, 60, 60, 60} // seconds
			if len(at) != len(want)+2 {
				t.Fatalf("%d fetches in 5 minutes, want %d", len(at), len(want)+2)
			}
			if first := at[1].Sub(at[0]); first < time.Second || first >= 2*time.Second {
				t.Errorf("the first pause is %v, want an Interval, and up to the next exchange", first)
			}
			for i, seconds := range want {
				if pause := at[i+2].Sub(at[i+1]); pause.Microseconds() != int64(seconds)*1e6 {
					t.Errorf("pause %d is %v, want %d s", i+2, pause, seconds)
				}
			}
			f.failing(false)
			time.Sleep(5 * time.Minute)
			if n := len(f.seen()); n != 1 {
				t.Errorf("%d fetches after the backend has come back, want 1", n)
			}
			f.failing(true)
		}
		_ = s.Close(context.Background())
	})
}

// The pause after a fetch that failed is over when one has worked, even if the
// clock is set back then.
func TestAClockThatIsSetBackDelaysNoFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		f := &fetches{shared: newShared(), fail: true}
		s := newStore(t, f, synced.Config{Interval: time.Second, Log: quiet, Clock: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
		newLimiterNamed(t, s, "a", aligned(10, day))
		f.failing(false)
		time.Sleep(3 * time.Second)
		if n := len(f.seen()); n != 2 {
			t.Errorf("%d fetches, want one that failed and one that worked", n)
		}
		back.Store(int64(time.Hour))
		newLimiterNamed(t, s, "b", aligned(10, time.Hour))
		if n := len(f.seen()); n != 1 {
			t.Errorf("%d fetches when a limiter is bound after the clock was set back, want 1", n)
		}
		_ = s.Close(context.Background())
	})
}

// Without exchanges nothing is fetched: neither when a limiter is bound or
// changed, nor by Increment.
func TestNothingIsFetchedWithoutExchanges(t *testing.T) {
	for _, interval := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			f := &fetches{shared: newShared()}
			s := newStore(t, f, synced.Config{Interval: interval, Log: quiet})
			l := newLimiter(t, s, aligned(10, day))
			config := core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(10, time.Hour)}}}}
			if err := l.Reconfigure(config); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Increment(t.Context(), "k", time.Minute, 1); err != nil {
				t.Fatal(err)
			}
			if n := len(f.seen()); n != 0 {
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
		f.seen()
		for _, row := range []struct {
			window time.Duration
			want   int
		}{{time.Hour, 1}, {day, 0}, {time.Minute, 1}} {
			if err := l.Reconfigure(core.Config{Name: "api", Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(20, row.window)}}}}); err != nil {
				t.Fatal(err)
			}
			if got := len(f.seen()); got != row.want {
				t.Errorf("%v: %d fetches, want %d", row.window, got, row.want)
			}
		}
		_ = s.Close(context.Background())
	})
}
