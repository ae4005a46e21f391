package resilient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for tests of what is decided, on machines that may be busy.
const patience = 20 * time.Second

var errGone = errors.New("connection refused")

// flaky is a store that can be told to fail or to hang.
type flaky struct {
	core.Store
	err     atomic.Pointer[error] // nil: works
	hang    atomic.Bool           // until the context of the test ends
	end     chan struct{}
	asked   atomic.Int64
	forgets bool         // resets do not fail
	most    atomic.Int64 // most at a time
	now     atomic.Int64
}

func (f *flaky) fail(err error) {
	if err == nil {
		f.err.Store(nil)
	} else {
		f.err.Store(&err)
	}
}

func (f *flaky) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := f.Store.Bind(limiter, rules)
	return flakyBound{b, f}, err
}

type flakyBound struct {
	core.Bound
	f *flaky
}

func (b flakyBound) do(op func() error) error {
	b.f.asked.Add(1)
	if n := b.f.now.Add(1); n > b.f.most.Load() {
		b.f.most.Store(n)
	}
	defer b.f.now.Add(-1)
	if b.f.hang.Load() {
		<-b.f.end
	}
	if err := b.f.err.Load(); err != nil {
		return *err
	}
	return op()
}

func (b flakyBound) Take(ctx context.Context, batch *core.Batch) error {
	return b.do(func() error { return b.Bound.Take(ctx, batch) })
}

func (b flakyBound) Refund(ctx context.Context, batch *core.Batch) error {
	return b.do(func() error { return b.Bound.Refund(ctx, batch) })
}

func (b flakyBound) Reset(ctx context.Context, batch *core.Batch) error {
	if b.f.forgets {
		return b.Bound.Reset(ctx, batch)
	}
	return b.do(func() error { return b.Bound.Reset(ctx, batch) })
}

func (b flakyBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next, err := b.Bound.Rebind(rules)
	return flakyBound{next, b.f}, err
}

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
		Rules: []core.Rule{{Name: "user", Key: core.TakeOnly, Limits: []core.Limit{core.PerHour(n)}}},
	}))
}

func take(l *core.Limiter) (core.Decision, error) {
	return l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "alice"})
}

func TestConformance(t *testing.T) {
	for name, prepare := range map[string]func(*flaky){
		"the store works":         func(*flaky) {},
		"the store fails":         func(f *flaky) { f.fail(errGone) },
		"the store is contended":  func(f *flaky) { f.fail(core.ErrContended) },
		"the store always panics": func(f *flaky) { f.Store = nilBounds{f.Store} },
	} {
		factory := func(t testing.TB, clock func() time.Time) core.Store {
			f := newFlaky(t, clock)
			f.forgets = true // a Reset that does not reach the store is an error
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

func (panics) Take(context.Context, *core.Batch) error       { panic("fault") }
func (panics) Refund(context.Context, *core.Batch) error     { panic("fault") }
func (panics) Reset(context.Context, *core.Batch) error      { return nil }
func (p panics) Rebind([]core.StoreRule) (core.Bound, error) { return p, nil }

// CASES 170: each of the three ways, and what is said of it.
func TestMeanwhile(t *testing.T) {
	for _, row := range []struct {
		meanwhile resilient.Meanwhile
		want      string // of six requests at a limit of three
	}{
		{resilient.InProcess, "[within limits within limits within limits over limit over limit over limit]"},
		{resilient.Open, "[within limits within limits within limits within limits within limits within limits]"},
		{resilient.Closed, "[failed failed failed failed failed failed]"},
	} {
		t.Run(row.meanwhile.String(), func(t *testing.T) {
			f := newFlaky(t, nil)
			f.fail(errGone)
			l := newLimiter(t, newStore(t, f, resilient.Config{Meanwhile: row.meanwhile}), 3)
			var got []core.Reason
			for i := range 6 {
				d, err := take(l)
				got = append(got, d.Reason)
				if !d.Degraded && row.meanwhile != resilient.Closed {
					t.Errorf("decision %d is not marked", i)
				}
				if (err != nil) != (row.meanwhile == resilient.Closed) {
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

// CASES 142, 173: a store that hangs holds up the first few, and then only one
// at a time, which tries it; it is asked again by all when it has come back.
func TestAHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []resilient.Change
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{
			Timeout: 100 * time.Millisecond, Failures: 3, Retry: time.Second,
			OnChange: func(c resilient.Change) { changes = append(changes, c) },
		}), 1_000_000)
		f.hang.Store(true)
		for i := range 10 {
			start := time.Now()
			if d, err := take(l); err != nil || !d.Allowed || !d.Degraded {
				t.Fatalf("take %d: %v, %v", i, d, err)
			}
			want := 100 * time.Millisecond
			if i >= 3 {
				want = 0
			}
			if got := time.Since(start); got != want {
				t.Errorf("take %d took %v, want %v", i, got, want)
			}
		}
		time.Sleep(1250 * time.Millisecond) // in the bubble: the retry and its random part
		asked, slow := f.asked.Load(), atomic.Int64{}
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				start := time.Now()
				if d, err := take(l); err != nil || !d.Allowed {
					t.Errorf("%v, %v", d, err)
				}
				if time.Since(start) > 0 {
					slow.Add(1)
				}
			})
		}
		wg.Wait()
		if n := f.asked.Load() - asked; n != 1 || slow.Load() != 1 {
			t.Errorf("%d of 1000 tried the store, %d had to wait; want 1", n, slow.Load())
		}
		if len(changes) != 1 || changes[0].Up || changes[0].Err == nil {
			t.Errorf("reported: %+v", changes)
		}
		f.hang.Store(false)
		close(f.end)
		time.Sleep(1250 * time.Millisecond)
		for i := range 5 {
			if d, err := take(l); err != nil || d.Degraded {
				t.Errorf("take %d after the store has come back: %v, %v", i, d, err)
			}
		}
		if len(changes) != 2 || !changes[1].Up || changes[1].Err != nil {
			t.Errorf("reported: %+v", changes)
		}
	})
}

// A change is logged once, however many requests and probes fail.
func TestAChangeIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), 1000)
		f.fail(errGone)
		for range 600 { // ten minutes
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		f.fail(nil)
		for range 10 {
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "connection refused") || !strings.Contains(text, "answer again") {
			t.Errorf("the log:\n%s", text)
		}
	})
}

// What says nothing about the store does not make it be given up.
func TestWhatIsNoTrouble(t *testing.T) {
	f := newFlaky(t, nil)
	s := newStore(t, f, resilient.Config{Failures: 1, Timeout: patience})
	l := newLimiter(t, s, 1000)
	for name, err := range map[string]error{"configuration": core.ErrConfig, "contention": core.ErrContended, "closed": core.ErrClosed} {
		f.fail(fmt.Errorf("wrapped: %w", err))
		if _, err := take(l); (err == nil) != (name == "contention") {
			t.Errorf("%s: %v", name, err)
		}
		if !s.Up() {
			t.Fatalf("%s: the store has been given up", name)
		}
	}
	f.fail(context.Canceled)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = l.Take(ctx, 1, core.Hit{Rule: "user", Key: "alice"})
	if !s.Up() {
		t.Error("a client that has hung up: the store has been given up")
	}
	f.fail(errGone)
	_, _ = take(l)
	if s.Up() {
		t.Error("a failure: the store has not been given up")
	}
}

// What was charged in the process is given back there; what was charged in the
// store, there.
func TestRefundsGoWhereTheChargeWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 2)
		inStore, _ := take(l)
		f.fail(errGone)
		inProcess, _ := take(l)
		if inStore.Degraded || !inProcess.Degraded {
			t.Fatal("not charged where the test wants it")
		}
		if err := l.Refund(context.Background(), inStore); !errors.Is(err, resilient.ErrDown) {
			t.Errorf("a refund that the store cannot be told: %v", err)
		}
		if err := l.Refund(context.Background(), inProcess); err != nil {
			t.Error(err)
		}
		left := func() int64 {
			d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "user", Key: "alice"})
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining
		}
		if n := left(); n != 2 {
			t.Errorf("%d left in the process, want 2", n)
		}
		again, _ := take(l)
		f.fail(nil)
		time.Sleep(1250 * time.Millisecond)
		if n := left(); n != 1 {
			t.Errorf("%d left in the store, want 1: it could not be told of the refund", n)
		}
		if err := l.Refund(context.Background(), again); err != nil {
			t.Error(err)
		}
		if n := left(); n != 1 {
			t.Errorf("%d left in the store after a refund of what was charged in the process, want 1", n)
		}
	})
}

func TestAResetForgetsInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 1)
		hit := core.Hit{Rule: "user", Key: "alice"}
		_, _ = take(l)
		f.fail(errGone)
		_, _ = take(l)
		if err := l.Reset(context.Background(), hit); !errors.Is(err, resilient.ErrDown) {
			t.Errorf("a reset that the store cannot be told: %v", err)
		}
		if d, _ := take(l); !d.Allowed {
			t.Error("not forgotten in the process")
		}
		f.fail(nil)
		time.Sleep(1250 * time.Millisecond)
		if d, _ := take(l); d.Allowed {
			t.Error("the store has forgotten what it was not told to")
		}
		if err := l.Reset(context.Background(), hit); err != nil {
			t.Error(err)
		}
		if d, _ := take(l); !d.Allowed || d.Degraded {
			t.Errorf("%v, after a reset", d)
		}
	})
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

func TestCallbackMayUseTheStore(t *testing.T) {
	f := newFlaky(t, nil)
	var s *resilient.Store
	var l *core.Limiter
	calls := 0
	s = newStore(t, f, resilient.Config{Failures: 1, OnChange: func(c resilient.Change) {
		calls++
		if _, err := take(l); err != nil || s.Up() != c.Up {
			t.Errorf("in the callback: %v, up %v", err, s.Up())
		}
	}})
	l = newLimiter(t, s, 10)
	f.fail(errGone)
	_, _ = take(l)
	if calls != 1 {
		t.Errorf("called %d times", calls)
	}
}

func TestWrongConfigurationIsNamed(t *testing.T) {
	_, err := resilient.New(nil, resilient.Config{Meanwhile: 7, Instances: -1, Timeout: -1, Failures: -2, Retry: time.Microsecond})
	if !errors.Is(err, core.ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"store: <nil>", "Meanwhile: 7", "Instances: -1", "Timeout: -1ns", "Failures: -2", "Retry: 1µs"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	if _, err := resilient.New(memory, resilient.Config{Meanwhile: resilient.Open, Instances: 2}); err == nil {
		t.Error("instances without counters: no error")
	}
	if _, err := resilient.New(memory, resilient.Config{MaxKeys: -1}); err == nil || !strings.Contains(err.Error(), "MaxKeys: -1") {
		t.Error(err)
	}
}

// What a store that is down costs.
func BenchmarkDown(b *testing.B) {
	f := newFlaky(b, nil)
	f.fail(errGone)
	for name, l := range map[string]*core.Limiter{
		"in process": newLimiter(b, newStore(b, f, resilient.Config{Retry: time.Hour}), core.MaxQuota),
		"memory":     newLimiter(b, nil, core.MaxQuota),
	} {
		for range 10 {
			_, _ = take(l)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := take(l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the way round costs where the store works.
func BenchmarkUp(b *testing.B) {
	l := newLimiter(b, newStore(b, core.Must(core.NewMemory(core.MemoryConfig{})), resilient.Config{}), core.MaxQuota)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := take(l); err != nil {
			b.Fatal(err)
		}
	}
}
