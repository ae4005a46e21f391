package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// What the store gives back is given back here too, whatever the store's clock is, and if
// an instance has a share. A sliding_log keeps it.
func TestRefundsOfTheStoresDecisions(t *testing.T) {
	limits := eachAlgorithm(40)
	limits["lockout"] = core.Limit{Quota: 40, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Hour}}
	for name, limit := range limits {
		for _, apart := range []time.Duration{0, -50 * time.Minute, 50 * time.Minute} {
			for _, instances := range []int{1, 4} {
				t.Run(fmt.Sprint(name, apart, instances), func(t *testing.T) {
					here, there := storetest.NewClock(time.Unix(1_764_000_000, 0)), storetest.NewClock(time.Unix(1_764_000_000, 0).Add(apart))
					f := newLink(there.Now)
					l := newLimiter(t, newStore(t, f, resilient.Config{Instances: instances, Clock: here.Now}), limit)
					for range 30 {
						d, err := l.Take(t.Context(), 2, alice)
						if err != nil || d.Degraded || !d.Allowed {
							t.Fatal(d, err)
						}
						here.Advance(time.Second)
						there.Advance(time.Second)
						if err := errors.Join(l.Reset(t.Context(), user("bob")), l.Adjust(t.Context(), d, 0)); err != nil {
							t.Fatal(err)
						}
					}
					if name == "token" {
						here.Advance(2 * time.Minute) // a hit is paid off in 90 seconds, and a second of two was
					}
					f.fail(errGone)
					want := 40 / instances
					if name == "log" {
						want = 0
					}
					if n := allowed(t, l, 50, alice); n != want {
						t.Errorf("%d allowed in an outage, want %d: all was given back before", n, want)
					}
				})
			}
		}
	}
}

// A refund goes to the counters that were charged, and to no others.
func TestRefundsInAndAfterAnOutage(t *testing.T) {
	for _, mode := range []resilient.Mode{resilient.Local, resilient.FailOpen} {
		f := newLink(nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{OnFailure: mode, Failures: 1 << 30}), fixed(5, time.Hour))
		left := func(err error, want int64) {
			t.Helper()
			f.fail(err)
			if d, err := l.Peek(t.Context(), 0, alice); err != nil || d.Remaining != want && (mode == resilient.Local || !d.Degraded) {
				t.Errorf("%v: %d left, want %d, %v", mode, d.Remaining, want, err)
			}
		}
		first, _ := take(l)
		second, _ := take(l)
		f.fail(errGone)
		third, err := take(l)
		if err != nil || second.Degraded || !third.Degraded {
			t.Fatal(first, second, third)
		}
		left(nil, 3)
		left(errGone, 2)
		if err := l.Adjust(t.Context(), first, 0); !errors.Is(err, errGone) {
			t.Errorf("%v: the refund of a decision of the store, which does not answer: %v", mode, err)
		}
		left(nil, 3)
		left(errGone, 2)
		f.fail(nil)
		asked := f.asked.Load()
		if err := l.Adjust(t.Context(), third, 0); err != nil || f.asked.Load() != asked {
			t.Errorf("%v: the refund of a decision without the store: %v, asked %d times", mode, err, f.asked.Load()-asked)
		}
		left(nil, 3)
		left(errGone, 3)
		f.fail(nil)
		if err := l.Adjust(t.Context(), second, 0); err != nil {
			t.Error(err)
		}
		left(nil, 4)
		left(errGone, 4)
	}
}

// operations are what an operator does with a key.
var operations = map[string]struct {
	do func(ctx context.Context, l *core.Limiter) error
	// of a quota of 6: left after 4 hits and the operation
	left int64
}{
	"block":     {func(ctx context.Context, l *core.Limiter) error { return l.Block(ctx, time.Hour, alice) }, 0},
	"grant":     {func(ctx context.Context, l *core.Limiter) error { _, err := l.Grant(ctx, 3, alice); return err }, 5},
	"reset":     {func(ctx context.Context, l *core.Limiter) error { return l.Reset(ctx, alice) }, 6},
	"reset all": {func(ctx context.Context, l *core.Limiter) error { return l.ResetAll(ctx) }, 6},
}

// Local does them in the store and here; in an outage only here, and says so.
func TestOperations(t *testing.T) {
	for name, row := range operations {
		for _, mode := range []resilient.Mode{resilient.Local, resilient.FailOpen, resilient.FailClosed} {
			t.Run(name+", "+mode.String(), func(t *testing.T) {
				const before = 2
				start := func(failures int) (*link, *core.Limiter, func(error) int64) {
					f := newLink(nil)
					l := newLimiter(t, newStore(t, f, resilient.Config{OnFailure: mode, Failures: failures}), core.PerHour(6))
					allowed(t, l, 4, alice)
					return f, l, func(err error) int64 {
						f.fail(err)
						d, _ := l.Peek(t.Context(), 0, alice)
						return d.Remaining
					}
				}
				_, l, left := start(1 << 30)
				if err := row.do(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				if n := left(nil); n != row.left {
					t.Errorf("%d left in the store, want %d", n, row.left)
				}
				if mode == resilient.Local && left(errGone) != row.left {
					t.Errorf("%d left here, want %d", left(errGone), row.left)
				}
				for _, failures := range []int{1 << 30, 1} {
					f, l, left := start(failures)
					f.fail(errGone)
					if failures == 1 {
						_, _ = l.Take(t.Context(), 1, user("bob"))
					}
					err := row.do(t.Context(), l)
					if errors.Is(err, core.ErrDegraded) != (mode == resilient.Local) ||
						mode == resilient.Local && (errors.Is(err, core.ErrNotCharged) || !strings.Contains(err.Error(), ": repeat it when the store answers: resilient: ")) || !errors.Is(err, errGone) && !errors.Is(err, resilient.ErrDown) {
						t.Errorf("in an outage: %v", err)
					}
					if mode == resilient.Local && left(errGone) != row.left {
						t.Errorf("%d left here, want %d", left(errGone), row.left)
					}
					if n := left(nil); failures != 1 && n != before {
						t.Errorf("%d left in the store, want %d", n, before)
					}
				}
			})
		}
	}
}
