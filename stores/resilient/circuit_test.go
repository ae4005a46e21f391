package resilient_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestAHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []resilient.Change
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{
			Meanwhile: resilient.ModeOpen, // owes nothing, so that requests try the store
			Timeout:   100 * time.Millisecond, Failures: 3, Retry: time.Second,
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

func TestWhatIsNoTrouble(t *testing.T) {
	f := newFlaky(t, nil)
	s := newStore(t, f, resilient.Config{Failures: 1, Timeout: patience})
	l := newLimiter(t, s, 1000)
	for name, err := range map[string]error{"configuration": core.ErrConfig, "contention": core.ErrContended, "closed": core.ErrClosed, "a damaged counter": core.ErrDamaged} {
		f.fail(fmt.Errorf("wrapped: %w", err))
		if _, err := take(l); (err == nil) != (name == "contention" || name == "a damaged counter") {
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
