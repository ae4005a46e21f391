package resilient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// An open circuit tries the store after Retry, or a quarter later at most.
const tried = time.Second + time.Second/4

func TestAHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []resilient.Change
		f := newLink(nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{
			Timeout: 100 * time.Millisecond, Failures: 3, Retry: time.Second,
			OnChange: func(c resilient.Change) { changes = append(changes, c) },
		}), core.PerHour(1_000_000))
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
		time.Sleep(tried)
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
		if len(changes) != 1 || changes[0].Up || changes[0].Server != "" || !errors.Is(changes[0].Err, context.DeadlineExceeded) {
			t.Errorf("reported: %+v", changes)
		}
		f.hang.Store(false)
		time.Sleep(tried)
		for i := range 5 {
			if degraded(t, l, alice) {
				t.Errorf("take %d after the store has come back", i)
			}
		}
		if len(changes) != 2 || changes[1] != (resilient.Change{Up: true}) {
			t.Errorf("reported: %+v", changes)
		}
		f.fail(errGone) // a failure that needs no time counts, whoever is in a hurry
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		for range 3 {
			_, _ = l.Take(ctx, 1, alice)
		}
		if len(changes) != 3 || changes[2].Up || !errors.Is(changes[2].Err, errGone) {
			t.Errorf("reported: %+v", changes)
		}
	})
}

// Requests that fail together count as one failure: a store that stalls once is asked again.
func TestAStallOpensNoCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLink(nil)
		s := newStore(t, f, resilient.Config{Timeout: 100 * time.Millisecond, Failures: 3})
		l := newLimiter(t, s, core.PerHour(1_000_000))
		wave := func() {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() { degraded(t, l, alice) })
			}
			wg.Wait()
		}
		f.hang.Store(true)
		wave()
		wave()
		if f.hang.Store(false); !s.Up() || degraded(t, l, alice) {
			t.Error("two stalls have opened the circuit")
		}
		f.hang.Store(true)
		wave()
		wave()
		if wave(); s.Up() {
			t.Error("three stalls without an answer between: the circuit is closed")
		}
	})
}

// What began before the circuit opened changes nothing when it ends.
func TestAnswersThatComeLate(t *testing.T) {
	for name, late := range map[string]func(f *link){
		"a failure": func(f *link) { f.hang.Store(true) },
		"an answer": func(f *link) { f.slow.Store(int64(time.Minute - time.Second)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newLink(nil)
			s := newStore(t, f, resilient.Config{Timeout: time.Minute, Failures: 1, Retry: time.Hour})
			l := newLimiter(t, s, core.PerHour(1_000_000))
			late(f)
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = take(l) }) // ends after a minute
			synctest.Wait()
			f.hang.Store(false)
			f.slow.Store(0)
			f.fail(errGone)
			degraded(t, l, alice)
			wg.Wait()
			if s.Up() {
				t.Errorf("%s: the circuit is closed", name)
			}
			f.fail(nil)
			time.Sleep(29 * time.Minute)
			if !degraded(t, l, alice) {
				t.Errorf("%s: the store was asked before Retry", name)
			}
		})
	}
}

func TestWhatIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newLink(nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}), core.PerHour(1_000_000))
		want := func(when string, lines ...string) {
			t.Helper()
			var got []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // the time
				got = append(got, line)
			}
			if !slices.Equal(got, lines) {
				t.Errorf("%s: logged\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(lines, "\n"))
			}
			log.Reset()
		}
		const down = `level=WARN msg="the shared counters do not answer" limiter=l on_failure=local error="resilient: connection refused"`
		const up = `level=INFO msg="the shared counters answer again" limiter=l`
		f.fail(errGone)
		_, _ = take(l)
		want("the first failure", down)
		for range 600 {
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		want("ten minutes")
		f.fail(nil)
		for range 10 {
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		want("the store is back", up)
		for range 181 {
			f.fail(errGone)
			_, _ = take(l)
			f.fail(nil)
			_, _ = take(l)
			time.Sleep(time.Second)
		}
		want("failures now and then for three minutes", down, down, down, down)
		f.fail(errGone)
		allowed(t, l, 4, alice)
		want("four failures within a minute of the last line")
		allowed(t, l, 1, alice)
		want("the circuit opens", down)
	})
}

// An error that is of the request or of one key is neither a failure of the store nor an answer.
// So is a denial by a cache.
func TestErrorsThatSayNothingAboutTheStore(t *testing.T) {
	causes := notTheStores()
	causes["a cached denial"] = nil
	for name, err := range causes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes []bool
				f := newLink(nil)
				s := newStore(t, f, resilient.Config{Failures: 2, OnChange: func(c resilient.Change) { changes = append(changes, c.Up) }})
				l := newLimiter(t, s, core.PerHour(1000))
				neutral := func() {
					f.fail(err)
					f.cached.Store(err == nil)
					_, _ = take(l)
					f.cached.Store(false)
					f.fail(errGone)
				}
				for range 5 {
					neutral()
				}
				if degraded(t, l, alice); !s.Up() {
					t.Error("after one failure the circuit is open")
				}
				neutral()
				if degraded(t, l, alice); s.Up() {
					t.Error("after two failures the circuit is closed")
				}
				for range 3 {
					time.Sleep(tried)
					asked := f.asked.Load()
					if neutral(); s.Up() || f.asked.Load() != asked+1 {
						t.Errorf("a try: up %v, asked %d times", s.Up(), f.asked.Load()-asked)
					}
				}
				f.fail(nil)
				if degraded(t, l, alice) || !s.Up() || fmt.Sprint(changes) != "[false true]" {
					t.Errorf("the next try: up %v, changes %v", s.Up(), changes)
				}
			})
		})
	}
}

// hang runs a test with a store that does not answer.
func hang(t *testing.T, test func(t *testing.T, s *resilient.Store, waits func(ctx context.Context) bool)) {
	synctest.Test(t, func(t *testing.T) {
		f := newLink(nil)
		f.hang.Store(true)
		s := newStore(t, f, resilient.Config{Failures: 5, Retry: time.Second, Timeout: 100 * time.Millisecond})
		l := newLimiter(t, s, core.PerHour(1000))
		test(t, s, func(ctx context.Context) bool {
			began := time.Now()
			if d, err := l.Take(ctx, 1, alice); err == nil && !d.Degraded || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", d, err)
			}
			return time.Since(began) > 0
		})
	})
}

func within(t *testing.T, d time.Duration, waits func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return waits(ctx)
}

// A deadline that is nearer than the store's opens the circuit.
func TestCallersWithADeadlineOpenTheCircuit(t *testing.T) {
	hang(t, func(t *testing.T, s *resilient.Store, waits func(context.Context) bool) {
		for _, want := range []int{5, 1} {
			waited := 0
			for range 20 {
				if within(t, 50*time.Millisecond, waits) {
					waited++
				}
			}
			if s.Up() || waited != want {
				t.Errorf("up %v, %d of 20 takes have waited, want %d", s.Up(), waited, want)
			}
			time.Sleep(tried)
		}
	})
}

// The store is not blamed for callers that give it no time, or go away. But a try without
// time counts, so that tries do not follow one another.
func TestCallersInAHurryDoNotOpenTheCircuit(t *testing.T) {
	hang(t, func(t *testing.T, s *resilient.Store, waits func(context.Context) bool) {
		for range 20 {
			within(t, 5*time.Millisecond, waits)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			waits(ctx)
		}
		if !s.Up() {
			t.Fatal("the circuit is open")
		}
		for range 5 {
			waits(t.Context())
		}
		time.Sleep(tried)
		waited := 0
		for range 20 {
			if within(t, 5*time.Millisecond, waits) {
				waited++
			}
		}
		if s.Up() || waited != 1 {
			t.Errorf("up %v, %d of 20 takes have waited, want one", s.Up(), waited)
		}
	})
}

// The context of an operation ends after Timeout; without one, only if the store keeps no deadline.
func TestTheDeadline(t *testing.T) {
	for _, row := range []struct {
		timeout time.Duration
		keeps   bool
		want    time.Duration // 0: none
	}{
		{0, true, 0}, {50 * time.Millisecond, true, 50 * time.Millisecond},
		{0, false, resilient.DefaultTimeout}, {50 * time.Millisecond, false, 50 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newLink(nil)
			f.guarantees = &core.Guarantees{Ops: core.AllOps, KeepsDeadline: row.keeps}
			f.hang.Store(true)
			l := newLimiter(t, newStore(t, f, resilient.Config{Timeout: row.timeout}), core.PerHour(10))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			if d, err := l.Take(ctx, 1, alice); err != nil || !d.Degraded {
				t.Error(d, err)
			}
			want := row.want
			if want == 0 {
				want = time.Hour
			}
			if got := time.Since(began); got != want {
				t.Errorf("%+v: returned after %v", row, got)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began = time.Now()
			if err := l.ResetAll(ctx); !errors.Is(err, core.ErrDegraded) || time.Since(began) != time.Hour {
				t.Errorf("%+v: ResetAll returned after %v: %v", row, time.Since(began), err)
			}
		})
	}
}

// Open circuits try again after Retry and at most a quarter of it more, not all at the same moment.
func TestWhenAnOpenCircuitTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		var all []*core.Limiter
		f := newLink(nil)
		f.fail(errGone)
		for range n {
			l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1, Retry: time.Second}), core.PerHour(10))
			degraded(t, l, alice)
			all = append(all, l)
		}
		f.fail(nil)
		answered := func() (n int) {
			for _, l := range all {
				if !degraded(t, l, alice) {
					n++
				}
			}
			return n
		}
		time.Sleep(time.Second - time.Nanosecond)
		if got := answered(); got != 0 {
			t.Errorf("%d of %d try again before Retry", got, n)
		}
		time.Sleep(time.Second / 8)
		if got := answered(); got == 0 || got == n {
			t.Errorf("%d of %d try again after an eighth more, want about a half", got, n)
		}
		time.Sleep(time.Second/8 + time.Microsecond)
		if got := answered(); got != n {
			t.Errorf("%d of %d try again after a quarter more", got, n)
		}
	})
}

// OnChange may use the store. If it panics, that is the request's panic, and nothing stays locked.
func TestOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ups []bool
		var s *resilient.Store
		var l *core.Limiter
		f := newLink(nil)
		s = newStore(t, f, resilient.Config{Failures: 1, OnChange: func(c resilient.Change) {
			if _, err := take(l); err != nil || s.Up() != c.Up {
				t.Errorf("in OnChange: %v, up %v", err, s.Up())
			}
			ups = append(ups, c.Up)
			panic("fault of the application")
		}})
		l = newLimiter(t, s, core.PerHour(100))
		panicked := func() (v any) {
			defer func() { v = recover() }()
			_, _ = take(l)
			return nil
		}
		f.fail(errGone)
		if panicked() == nil || panicked() != nil || s.Up() {
			t.Errorf("up %v", s.Up())
		}
		f.fail(nil)
		time.Sleep(tried)
		if panicked() == nil || panicked() != nil || fmt.Sprint(ups) != "[false true]" || !s.Up() {
			t.Errorf("reported %v, up %v", ups, s.Up())
		}
	})
}
