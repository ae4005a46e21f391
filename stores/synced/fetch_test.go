package synced_test

import (
	"context"
	"fmt"
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

const day = 24 * time.Hour

// A process that starts after the others have used the quota up denies its
// first request, whichever way it asks, and whatever it asks first.
func TestAProcessThatStartsLate(t *testing.T) {
	first := map[string]func(t *testing.T, s *synced.Store, l *core.Limiter){
		"take": func(t *testing.T, _ *synced.Store, l *core.Limiter) {
			for range 10 {
				if take(t, l, "k") {
					t.Error("allowed")
				}
			}
		},
		"peek": func(t *testing.T, _ *synced.Store, l *core.Limiter) {
			if got := left(t, l, "k"); got != 0 {
				t.Errorf("%d left", got)
			}
		},
		"rate": func(t *testing.T, s *synced.Store, _ *core.Limiter) {
			for range 2 {
				if got, err := s.Rate(t.Context(), "k", day, 1); err != nil || got != 11 {
					t.Errorf("%v, %v, want 11", got, err)
				}
			}
		},
		"increment": func(t *testing.T, s *synced.Store, _ *core.Limiter) {
			if got, err := s.Increment(t.Context(), "k", day, 2); err != nil || got != 12 {
				t.Errorf("%v, %v, want 12", got, err)
			}
		},
		"increment by 0": func(t *testing.T, s *synced.Store, _ *core.Limiter) {
			if got, err := s.Increment(t.Context(), "k", day, 0); err != nil || got != 10 {
				t.Errorf("%v, %v, want 10", got, err)
			}
		},
	}
	for name, ask := range first {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared()
				early, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second, Windows: []time.Duration{day}}, aligned(10, day))
				for range 10 {
					take(t, limiters[0], "k")
				}
				if _, err := early[0].Increment(t.Context(), "k", day, 10); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1100 * time.Millisecond)
				late, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Hour, Windows: []time.Duration{day}}, aligned(10, day))
				ask(t, late[0], limiters[0])
				_, _ = early[0].Close(context.Background()), late[0].Close(context.Background())
			})
		})
	}
}

// Windows that a limiter is bound with, or changed to, while the store works
// are fetched too.
func TestWindowsThatAreBoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		early, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day), aligned(10, 2*day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)

		s := newStore(t, &node{b}, synced.Config{Interval: time.Second, Log: quiet})
		if _, err := core.New(core.Config{Name: "other", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(10, time.Hour)}}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		l := newLimiter(t, s, aligned(10, day))
		if take(t, l, "k") {
			t.Error("a window bound later: allowed")
		}
		config := core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{aligned(10, 2*day)}}}}
		if err := l.Reconfigure(config); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1100 * time.Millisecond)
		if take(t, l, "k") {
			t.Error("a window of a changed limit: allowed")
		}
		_, _ = early[0].Close(context.Background()), s.Close(context.Background())
	})
}

// What a key is asked for with, taking or reading, has it take part in the
// exchanges; a key that nobody asks for drops out.
func TestReadingKeepsAKeyInTheExchange(t *testing.T) {
	for name, read := range map[string]func(s *synced.Store, l *core.Limiter) float64{
		"peek": func(_ *synced.Store, l *core.Limiter) float64 { return 1000 - float64(left(t, l, "k")) },
		"rate": func(s *synced.Store, _ *core.Limiter) float64 {
			rate, err := s.Rate(context.Background(), "k", day, 0)
			if err != nil {
				t.Fatal(err)
			}
			return rate
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newShared()
				stores, limiters := newNodes(t, b, 2, synced.Config{Interval: time.Second, Windows: []time.Duration{day}}, aligned(1000, day))
				for i := range 20 {
					take(t, limiters[0], "k")
					if _, err := stores[0].Increment(t.Context(), "k", day, 1); err != nil {
						t.Fatal(err)
					}
					read(stores[1], limiters[1]) // the first knows nothing yet
					time.Sleep(2*time.Second + time.Millisecond)
					if got := read(stores[1], limiters[1]); got != float64(i+1) {
						t.Errorf("the other process reads %v, want %d", got, i+1)
					}
				}
				time.Sleep(5 * time.Second)
				b.set(func(b *shared) { b.asked = 0 })
				time.Sleep(10 * time.Second)
				b.set(func(b *shared) {
					if b.asked != 0 {
						t.Errorf("%d counters are exchanged of which nobody asks for", b.asked)
					}
				})
				for _, s := range stores {
					_ = s.Close(context.Background())
				}
			})
		})
	}
}

// stuck is a backend that does not answer, until it is told to.
type stuck struct {
	*shared
	free chan struct{}
}

func (b *stuck) Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[synced.Counter, error] {
	return func(yield func(synced.Counter, error) bool) {
		select {
		case <-b.free:
			b.shared.Counters(ctx, namespace, windows, at)(yield)
		case <-ctx.Done():
			yield(synced.Counter{}, ctx.Err())
		}
	}
}

// A fetch that gets no answer holds limiters up for one Timeout, however many
// there are; the first exchange of a key makes up for it.
func TestAFetchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		early, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)
		hanging := &stuck{b, make(chan struct{})}
		s := newStore(t, hanging, synced.Config{Interval: 10 * time.Second, Timeout: 100 * time.Millisecond, Log: quiet})
		began := time.Now()
		l := newLimiter(t, s, aligned(10, day))
		for i := range 20 {
			newLimiterNamed(t, s, fmt.Sprint("more", i), aligned(10, time.Duration(i+1)*time.Hour))
		}
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("the limiters wait %v, want one Timeout", d)
		}
		left(t, l, "k")
		time.Sleep(20 * time.Second)
		if take(t, l, "k") {
			t.Error("allowed after an exchange of the key")
		}
		_, _ = early[0].Close(context.Background()), s.Close(context.Background())
	})
}

// Increment and Rate fetch too, in a process without limiters.
func TestIncrementFetches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		windows := []time.Duration{time.Hour, day}
		early := newStore(t, &node{b}, synced.Config{Interval: time.Second, Windows: windows, Log: quiet})
		for _, window := range windows {
			if _, err := early.Increment(t.Context(), "k", window, 10); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1100 * time.Millisecond)
		late := newStore(t, &node{b}, synced.Config{Interval: time.Hour, Windows: windows, Log: quiet})
		if got, err := late.Increment(t.Context(), "k", day, 1); err != nil || got != 11 {
			t.Errorf("Increment: %v, %v, want 11", got, err)
		}
		if got, err := late.Rate(t.Context(), "k", time.Hour, 0); err != nil || got != 10 {
			t.Errorf("Rate: %v, %v, want 10", got, err)
		}
		_, _ = early.Close(context.Background()), late.Close(context.Background())
	})
}

// The first exchange of a key makes up for a fetch that has failed.
func TestAFetchThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		early, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)
		b.set(func(b *shared) { b.down = true })
		late, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		b.set(func(b *shared) { b.down = false })
		left(t, limiters[0], "k")
		time.Sleep(2100 * time.Millisecond)
		if take(t, limiters[0], "k") {
			t.Error("allowed although two exchanges have worked")
		}
		_, _ = early[0].Close(context.Background()), late[0].Close(context.Background())
	})
}

// Another process of an earlier day, or another namespace, is not fetched.
func TestOnlyTheNamespaceIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		a, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second, Namespace: "a"}, aligned(10, day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)
		other, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second, Namespace: "b"}, aligned(10, day))
		if got := left(t, limiters[0], "k"); got != 10 {
			t.Errorf("%d left in the other namespace, want 10", got)
		}
		_, _ = a[0].Close(context.Background()), other[0].Close(context.Background())
	})
}
