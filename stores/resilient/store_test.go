package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a timeout that never passes, for tests of decisions on machines
// that may be busy.

const patience = 20 * time.Second

var errGone = errors.New("connection refused")

// errFull is a failure of which the store says that it has charged nothing.
var errFull = fmt.Errorf("no memory left: %w", core.ErrNotCharged)

func newFlaky(t testing.TB, clock func() time.Time) *flaky {
	f := &flaky{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock})), end: make(chan struct{})}
	return f
}

func newStore(t testing.TB, inner core.Store, c resilient.Config) *resilient.Store {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s, err := resilient.New(inner, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A limiter of n requests an hour for each user.

func newLimiter(t testing.TB, s core.Store, n int64) *core.Limiter {
	t.Helper()
	return core.Must(core.New(core.Config{
		Name: "l", Store: s,
		Rules: []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(n)}}},
	}))
}

func take(l *core.Limiter) (core.Decision, error) {
	return l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*flaky){
		"the store works":         func(*flaky) {},
		"the store fails":         func(f *flaky) { f.fail(errGone) },
		"the store is contended":  func(f *flaky) { f.fail(core.ErrContended) },
		"the store always panics": func(f *flaky) { f.Store = nilBounds{f.Store} },
	} {
		factory := func(t testing.TB, clock func() time.Time) core.Store {
			f := newFlaky(t, clock)
			f.forgets = true // a Reset, Release or Renew that does not reach the store is an error
			prepare(f)
			return newStore(t, f, resilient.Config{Timeout: patience, Clock: clock, Failures: 1 << 30})
		}
		t.Run(name, func(t *testing.T) { storetest.Run(t, factory) })
		if name != "the store works" {
			t.Run(name+": vectors", func(t *testing.T) { storetest.Vectors(t, factory) })
		}
	}
}

// nilBounds is a store with a fault that panics.

type nilBounds struct{ core.Store }

func (s nilBounds) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	if _, err := s.Store.Bind(limiter, rules); err != nil {
		return nil, err
	}
	return panics{}, nil
}

type panics struct{ core.Bound }

func (panics) Take(context.Context, *core.Batch) error { panic("fault") }

func (panics) Refund(context.Context, *core.Batch) error { panic("fault") }

func (panics) Reset(context.Context, *core.Batch) error { return nil }

func (panics) Release(context.Context, *core.Batch) error { return nil }

func (panics) Renew(context.Context, *core.Batch) error { return nil }

func (p panics) Rebind([]core.StoreRule) (core.Bound, error) { return p, nil }

// Each of the three ways, and what is reported of it.
func TestMeanwhile(t *testing.T) {
	for _, row := range []struct {
		meanwhile resilient.Mode
		want      string // of six requests at a limit of three
	}{
		{resilient.ModeInProcess, "[within limits within limits within limits over limit over limit over limit]"},
		{resilient.ModeOpen, "[within limits within limits within limits within limits within limits within limits]"},
		{resilient.ModeClosed, "[failed failed failed failed failed failed]"},
	} {
		t.Run(row.meanwhile.String(), func(t *testing.T) {
			f := newFlaky(t, nil)
			f.fail(errGone)
			l := newLimiter(t, newStore(t, f, resilient.Config{Meanwhile: row.meanwhile}), 3)
			var got []core.Reason
			for i := range 6 {
				d, err := take(l)
				got = append(got, d.Reason)
				if !d.Degraded && row.meanwhile != resilient.ModeClosed {
					t.Errorf("decision %d is not marked", i)
				}
				if (err != nil) != (row.meanwhile == resilient.ModeClosed) {
					t.Errorf("decision %d: %v", i, err)
				}
				if err != nil && i >= resilient.DefaultFailures && !errors.Is(err, resilient.ErrDown) {
					t.Errorf("decision %d: %v, want ErrDown", i, err)
				}
			}
			if text := fmt.Sprint(got); text != row.want { //nolint:staticcheck // a list
				t.Errorf("%v, want %v", got, row.want)
			}
			if n := f.asked.Load(); n != resilient.DefaultFailures {
				t.Errorf("the store was asked %d times", n)
			}
		})
	}
}

// Four instances together admit what the limit says, or the rounding more.

func TestEachInstanceCountsItsShare(t *testing.T) {
	for quota, want := range map[int64]int64{100: 25, 101: 26, 3: 1, 1: 1, 0: 0} {
		f := newFlaky(t, nil)
		f.fail(errGone)
		l := newLimiter(t, newStore(t, f, resilient.Config{Instances: 4}), quota)
		n := int64(0)
		for range 200 {
			if d, err := take(l); err != nil {
				t.Fatal(err)
			} else if d.Allowed {
				n++
			}
		}
		if n != want {
			t.Errorf("%d of a quota of %d admitted, want %d", n, quota, want)
		}
	}
}

// A store that fails now and then: every request is decided, and never more are

// admitted than by both counters together.

func TestFailuresNowAndThen(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	f := newFlaky(t, nil)
	l := newLimiter(t, newStore(t, f, resilient.Config{Retry: time.Millisecond, Timeout: patience}), 50)
	allowed := 0
	for range 2000 {
		f.fail(nil)
		if r.IntN(3) == 0 {
			f.fail(errGone)
		}
		d, err := take(l)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d.Allowed {
			allowed++
		}
	}
	if allowed > 100 || allowed < 50 {
		t.Errorf("seed %d: %d admitted, want from 50 to 100", seed, allowed)
	}
}
