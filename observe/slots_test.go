package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/observe"
)

func everybody(dst []byte, _ core.Request) ([]byte, error) { return append(dst, 'k'), nil }

// A queue of two rules: one whose requests wait for a slot, and one with workers that wait.
func TestCountsOfSlotsAndLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := observe.NewCounts()
		config := core.Config{Name: "l", Log: quiet, Observer: counts, Rules: []core.Rule{
			{Name: "export", Key: everybody, MaxWait: 5 * time.Second, Limits: []core.Limit{core.InFlight(1)}},
			{Name: "worker", Limits: []core.Limit{core.PerHour(1)}},
		}}
		l := core.Must(core.New(config))
		said := func() string {
			n := counts.Read()[0]
			var all []string
			for _, f := range n.InFlight {
				all = append(all, fmt.Sprint(f.Rule, " holds ", f.Held, ", has held ", buckets(f.Durations)))
			}
			for _, q := range n.Queues {
				all = append(all, fmt.Sprint(q.Rule, " has ", q.Waiting, " in line"))
				for _, w := range q.Waits {
					all = append(all, fmt.Sprint(w.Result, " after ", buckets(w.Durations)))
				}
			}
			return strings.Join(all, "; ")
		}
		check := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := said(); got != want {
				t.Errorf("counts\n%s, want\n%s", got, want)
			}
		}
		check("export holds 0, has held 0s; export has 0 in line")
		r := floodgatetest.NewRequest("GET", "/")
		first := l.Check(r)
		ctx, cancel := context.WithCancel(t.Context())
		for i, ctx := range []context.Context{t.Context(), t.Context(), ctx} {
			go func() {
				r := floodgatetest.NewRequest("GET", "/", floodgatetest.Context(ctx))
				if d := l.Check(r); d.Allowed {
					time.Sleep(3 * time.Second)
					l.Settle(r, d, core.Outcome{Status: 200, Panicked: i == 1})
				}
			}()
			synctest.Wait()
		}
		check("export holds 1, has held 0s; export has 3 in line")
		time.Sleep(time.Second)
		cancel()
		check("export holds 1, has held 0s; export has 2 in line; denied after 1s: 1 up to 1s")
		l.Settle(r, first, core.Outcome{Status: 200})
		check("export holds 1, has held 1s: 1 up to 1s; export has 1 in line; allowed after 1s: 1 up to 1s; denied after 1s: 1 up to 1s")
		config.Rules[0].Limits[0].Quota = 2
		if err := l.Reconfigure(config); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		check("export holds 0, has held 7s: 1 up to 1s, 2 up to 5s; export has 0 in line; allowed after 5s: 1 up to 1s, 1 up to 5s; denied after 1s: 1 up to 1s")
		hit := core.Hit{Rule: "worker", Key: "k"}
		for range 2 {
			if _, err := l.Wait(t.Context(), 1, hit); err != nil {
				t.Fatal(err)
			}
		}
		check("export holds 0, has held 7s: 1 up to 1s, 2 up to 5s; export has 0 in line; allowed after 5s: 1 up to 1s, 1 up to 5s; denied after 1s: 1 up to 1s; " +
			"worker has 0 in line; allowed after 1h0m0s: 1 longer")
	})
}

// buckets is what durations say, as text.
func buckets(d observe.Durations) string {
	var all []string
	for i, n := range d.Buckets {
		switch {
		case n == 0:
		case i < len(observe.RequestBounds()):
			all = append(all, fmt.Sprint(n, " up to ", observe.RequestBounds()[i]))
		default:
			all = append(all, fmt.Sprint(n, " longer"))
		}
	}
	if all == nil {
		return d.Took.Round(time.Millisecond).String()
	}
	return fmt.Sprint(d.Took.Round(time.Millisecond), ": ", strings.Join(all, ", "))
}

// A request that fails after a wait has no rule.
func TestCountsOfAFailureInLine(t *testing.T) {
	counts := observe.NewCounts()
	f := counts.Observe("l", []core.Rule{rule("a", 9)})
	f.Decided(t.Context(), core.Observation{Rule: -1, Reason: core.ReasonFailed, Err: errors.New("down"), Waited: time.Second})
	got := counts.Read()[0].Queues
	if len(got) != 1 || got[0].Rule != "" || len(got[0].Waits) != 1 || got[0].Waits[0].Result != observe.Failed || got[0].Waits[0].Took != time.Second {
		t.Errorf("%+v", got)
	}
}

func TestBoundsAscend(t *testing.T) {
	for _, b := range [][]time.Duration{observe.Bounds(), observe.RequestBounds()} {
		if !slices.IsSorted(b) {
			t.Error(b)
		}
	}
}
