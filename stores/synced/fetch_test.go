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

// A process that starts late knows the hits of the window before, too: by its clock.
func TestTheWindowBeforeIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		c := synced.Config{Interval: time.Second, Clock: func() time.Time { return time.Now().Add(400 * day) }}
		_, early := newNodes(t, b, 1, c, aligned(100, time.Minute))
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 50*time.Second)))
		for range 60 {
			take(t, early[0], "k")
		}
		time.Sleep(2 * time.Second)
		_, waiting := newNodes(t, b, 1, c, aligned(100, time.Minute))
		time.Sleep(38 * time.Second) // half of the next window
		c.Interval = time.Hour
		_, late := newNodes(t, b, 1, c, aligned(100, time.Minute))
		if got := left(t, late[0], "k"); got != 70 {
			t.Errorf("%d left, want 70: half of the 60 hits count", got)
		}
		time.Sleep(25 * time.Second)
		if got := left(t, waiting[0], "k"); got != 95 {
			t.Errorf("%d left, want 95: what was fetched counts until the next window ends", got)
		}
	})
}

const day = 24 * time.Hour

// A process that starts after the others have used the quota up denies its first request, whichever way it asks.
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
			})
		})
	}
}

// Windows that a limiter is bound with, or changed to, while the store works are fetched too.
func TestWindowsThatAreBoundLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day), aligned(10, 2*day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)

		s := newStore(t, &node{b}, synced.Config{Interval: time.Second, Log: quiet})
		newLimiterNamed(t, s, "other", aligned(10, time.Hour))
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
			})
		})
	}
}

// A fetch that gets no answer holds limiters up for one Timeout, however many
// there are; the first exchange of a key makes up for it.
func TestAFetchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newShared()
		_, limiters := newNodes(t, b, 1, synced.Config{Interval: time.Second}, aligned(10, day))
		for range 10 {
			take(t, limiters[0], "k")
		}
		time.Sleep(1100 * time.Millisecond)
		hanging := &scripted{shared: b, counters: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		s := newStore(t, hanging, synced.Config{Interval: 10 * time.Second, Timeout: 100 * time.Millisecond, Log: quiet})
		began := time.Now()
		l := newLimiter(t, s, aligned(10, day))
		for i := range 20 {
			newLimiterNamed(t, s, fmt.Sprint("more", i), aligned(10, time.Duration(i+1)*time.Hour))
		}
		if d := time.Since(began); d != 100*time.Millisecond || s.Stats().Failed != 1 {
			t.Errorf("the limiters wait %v, want one Timeout; %+v", d, s.Stats())
		}
		left(t, l, "k")
		time.Sleep(20 * time.Second)
		if take(t, l, "k") {
			t.Error("allowed after an exchange of the key")
		}
	})
}

// What was fetched does not replace what an exchange has found since, and is not added to it.
func TestAFetchThatIsOlderThanAnExchange(t *testing.T) {
	b := newShared()
	b.down = true
	s := newStore(t, b, synced.Config{Interval: time.Hour, Windows: []time.Duration{day}, Log: quiet})
	l := newLimiter(t, s, aligned(10, 2*day)) // fetches nothing: the backend fails
	b.set(func(b *shared) { b.down = false })
	use := func(hits, exchanges int) {
		for range hits {
			take(t, l, "k")
		}
		for range exchanges {
			if err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(3, 1)
	newLimiterNamed(t, s, "other", aligned(10, 2*day)) // fetches the three hits
	use(2, 4)                                          // the key drops out of the exchanges
	if got := left(t, l, "k"); got != 5 {
		t.Errorf("%d left after 5 of 10", got)
	}
}
