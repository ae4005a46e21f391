package swapstore_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
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
	{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 10 * time.Minute, Factor: 2, Max: time.Hour, Decay: time.Hour}},
}

// A clock that is set back by less than a window is behind the stored time, and
// the client waits for that. A clock that is set back by a window has been
// stepped, and the client waits as long as if the hits were of now. Looking and
// taking do the same.
func TestAClockThatIsSetBackByAWindow(t *testing.T) {
	for _, limit := range hourLimits {
		for _, op := range []core.Op{core.OpPeek, core.OpTake} {
			for back, moved := range map[time.Duration]bool{
				time.Microsecond: false, time.Hour - time.Microsecond: false, time.Hour: true, time.Hour + time.Microsecond: true, 48 * time.Hour: true,
			} {
				if back%time.Hour != 0 && moved && limit.Aligned {
					continue // the hits are then of a window that began earlier
				}
				t.Run(fmt.Sprintf("%v, back by %v, %v", limit, back, op), func(t *testing.T) {
					w := newWorld(t, quiet, core.StoreRule{Name: "a", Limits: []core.Limit{limit}})
					w.clock.now = time.Unix(1_764_000_000, 0).Truncate(time.Hour)
					look := func() (bool, time.Duration) {
						b := w.do(op, 1)
						return b.Allowed, b.Items[0].Results[0].RetryAfter
					}
					for w.do(core.OpTake, 1).Allowed {
					}
					_, want := look()
					if !moved {
						want += back
					}
					w.clock.advance(-back)
					allowed, wait := look()
					if allowed || wait > want || wait < want-limit.Precision || !moved && wait != want {
						t.Errorf("allowed %v, retry after %v, want %v", allowed, wait, want)
					}
					w.clock.advance(wait - time.Microsecond)
					if allowed, wait := look(); allowed || wait != time.Microsecond {
						t.Errorf("a microsecond earlier: allowed %v, retry after %v", allowed, wait)
					}
					w.clock.advance(time.Microsecond)
					if !w.do(core.OpTake, 1).Allowed {
						t.Error("denied when the time had come")
					}
				})
			}
		}
	}
}

// The clocks of two processes differ by windows: the log of the one behind says so, once
// a minute. By less than a window, it says nothing.
func TestClocksThatDifferByAWindowAreLogged(t *testing.T) {
	for _, limit := range hourLimits {
		for apart, want := range map[time.Duration]int{time.Hour - time.Microsecond: 0, 3 * time.Hour: 1} {
			t.Run(fmt.Sprint(limit, apart), func(t *testing.T) {
				var log strings.Builder
				behind := newWorld(t, slog.New(slog.NewTextHandler(&log, nil)), core.StoreRule{Name: "a", Limits: []core.Limit{limit}})
				clock := behind.clock.Now().Add(apart)
				ahead := core.Must(core.Must(swapstore.New(behind.swapper, swapstore.Config{Clock: func() time.Time { return clock }})).Open("l", behind.rules))
				for range 3 {
					if err := storetest.Do(t.Context(), ahead, core.OpTake, behind.batch(1)); err != nil {
						t.Fatal(err)
					}
					behind.do(core.OpTake, 1)
				}
				if got := strings.Count(log.String(), "clocks differ"); got != want {
					t.Errorf("logged %d times, want %d:\n%s", got, want, &log)
				}
			})
		}
	}
}
