package swapstore_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/swapstore"
)

// hourLimits are limits of every algorithm, of one hour.
var hourLimits = []core.Limit{
	{Quota: 3, Window: time.Hour},
	{Quota: 3, Window: time.Hour, Aligned: true},
	{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow},
	{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Aligned: true},
	{Quota: 3, Window: time.Hour, Algorithm: core.TokenBucket},
	{Quota: 3, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 2},
	{Quota: 3, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	{Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog},
	{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 10 * time.Minute}},
}

// A clock that is set back by less than a window is behind the stored time, and
// the client waits for that. A clock that is set back by a window has been
// stepped, and the client waits as long as if the hits were of now. Looking and
// taking do the same, and so do both kinds of store.
func TestAClockThatIsSetBackByAWindow(t *testing.T) {
	for _, limit := range hourLimits {
		for _, peek := range []bool{true, false} {
			for back, moved := range map[time.Duration]bool{
				time.Microsecond: false, time.Hour - time.Microsecond: false, time.Hour: true, time.Hour + time.Microsecond: true, 48 * time.Hour: true,
			} {
				if back%time.Hour != 0 && moved && limit.Aligned {
					continue // the hits are then of a window that began earlier
				}
				for name, newStore := range map[string]func(clock func() time.Time) core.Store{
					"Memory": func(clock func() time.Time) core.Store {
						return core.Must(core.NewMemory(core.MemoryConfig{Clock: clock}))
					},
					"SwapStore": func(clock func() time.Time) core.Store {
						return core.Must(swapstore.New(newSwapper(), swapstore.Config{Clock: clock}))
					},
				} {
					t.Run(fmt.Sprintf("%v, %s, back by %v, peek %v", limit, name, back, peek), func(t *testing.T) {
						c := &clock{time.Unix(1_764_000_000, 0).Truncate(time.Hour)}
						l := newLimiter(t, core.Config{Name: "l", Store: newStore(c.Now), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}})
						look := func() core.Decision {
							f := l.Take
							if peek {
								f = l.Peek
							}
							d, err := f(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
							if err != nil {
								t.Fatal(err)
							}
							return d
						}
						for take(t, l, "k") {
						}
						at := look().RetryAfter
						want := at + back
						if moved {
							want = at
						}
						c.advance(-back)
						d := look()
						if precision := limit.Precision; d.Allowed || d.RetryAfter > want || d.RetryAfter < want-precision || !moved && d.RetryAfter != want {
							t.Errorf("allowed %v, retry after %v, want %v", d.Allowed, d.RetryAfter, want)
						}
						c.advance(d.RetryAfter - time.Microsecond)
						if d := look(); d.Allowed || d.RetryAfter != time.Microsecond {
							t.Errorf("a microsecond earlier: allowed %v, retry after %v", d.Allowed, d.RetryAfter)
						}
						c.advance(time.Microsecond)
						if !take(t, l, "k") {
							t.Error("denied when the time had come")
						}
					})
				}
			}
		}
	}
}

// The clocks of two processes differ by windows: the log of the one behind says so, once.
// By less than a window, it says nothing.
func TestClocksThatDifferByAWindowAreLoggedOnce(t *testing.T) {
	for _, limit := range hourLimits {
		for apart, want := range map[time.Duration]int{time.Hour - time.Microsecond: 0, 3 * time.Hour: 1} {
			t.Run(fmt.Sprint(limit, apart), func(t *testing.T) {
				var log strings.Builder
				swapper, now := newSwapper(), time.Unix(1_764_000_000, 0).Truncate(time.Hour)
				newAt := func(at time.Time) *core.Limiter {
					c := swapstore.Config{Clock: func() time.Time { return at }, Log: slog.New(slog.NewTextHandler(&log, nil))}
					return newLimiter(t, core.Config{Name: "l", Store: core.Must(swapstore.New(swapper, c)), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}})
				}
				behind, ahead := newAt(now), newAt(now.Add(apart))
				for _, key := range []string{"k", "k", "l"} {
					take(t, ahead, key)
					take(t, behind, key)
				}
				if got := strings.Count(log.String(), "clocks differ"); got != want {
					t.Errorf("logged %d times, want %d:\n%s", got, want, &log)
				}
			})
		}
	}
}
