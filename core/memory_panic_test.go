package core_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A panic of the clock is the caller's panic. It leaves no lock held and
// charges nothing.
func TestAClockThatPanicsLeavesTheStoreUsable(t *testing.T) {
	c, panics := newClock(), false
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100, Clock: func() time.Time {
		if panics {
			panic("the clock is broken")
		}
		return c.Now()
	}}))
	l := newLimiter(t, core.Config{Store: m, Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerHour(5)}},
		{Name: "two", Limits: []core.Limit{core.PerHour(5), {Quota: 9, Window: 24 * time.Hour}}},
	}}, nil)
	known, unknown, two := core.Hit{Rule: "r", Key: "known"}, core.Hit{Rule: "r", Key: "unknown"}, core.Hit{Rule: "two", Key: "k"}
	charged, err := l.Take(t.Context(), 1, known)
	if err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func() error{
		"take of a known key": func() error { _, err := l.Take(t.Context(), 1, known); return err },
		"take of a new key":   func() error { _, err := l.Take(t.Context(), 1, unknown); return err },
		"take of two keys":    func() error { _, err := l.Take(t.Context(), 1, known, two); return err },
		"peek":                func() error { _, err := l.Peek(t.Context(), 1, two); return err },
		"refund":              func() error { return l.Adjust(t.Context(), charged, 0) },
		"reset":               func() error { return l.Reset(t.Context(), known) },
	} {
		panics = true
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the clock's panic is lost", name)
				}
			}()
			_ = op()
		}()
		panics = false
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, h := range []core.Hit{known, unknown, two} {
				if _, err := l.Peek(t.Context(), 1, h); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if got := left(t, l, "r", "known"); got != 4 {
				t.Errorf("%s: %d hits are left of 5 after one was charged", name, got)
			}
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: a lock is still held", name)
		}
	}
	if m.Len() != 1 {
		t.Errorf("%d keys are held, want 1", m.Len())
	}
}

// The clock is called without a lock: it may use the store itself.
func TestAClockMayUseTheStore(t *testing.T) {
	c, nested := newClock(), false
	var l *core.Limiter
	m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100, Clock: func() time.Time {
		if nested {
			nested = false
			takeOf(t, l, "r", "k")
		}
		return c.Now()
	}}))
	l = newLimiter(t, core.Config{Store: m, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(5)}}}}, nil)
	for range 2 {
		nested = true
		takeOf(t, l, "r", "k")
	}
	if got := left(t, l, "r", "k"); got != 1 {
		t.Errorf("%d hits are left of 5 after four", got)
	}
}

// Close may be called while the store is in use. When it has returned, every
// operation fails with ErrClosed, and nothing is held.
func TestCloseWhileTheStoreIsInUse(t *testing.T) {
	for range 20 {
		m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 5000}))
		config := core.Config{Store: m, Rules: []core.Rule{
			{Name: "a", Limits: []core.Limit{core.PerHour(3)}},
			{Name: "b", Limits: []core.Limit{core.PerHour(3), {Quota: 9, Window: 24 * time.Hour}}},
		}}
		l := newLimiter(t, config, nil)
		closed := make(chan struct{})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					a, b := core.Hit{Rule: "a", Key: fmt.Sprint(i)}, core.Hit{Rule: "b", Key: fmt.Sprint(i / 2)}
					after := false
					select {
					case <-closed:
						after = true
					default:
					}
					var d core.Decision
					var errs [4]error
					d, errs[0] = l.Take(t.Context(), 1, a)
					_, errs[1] = l.Take(t.Context(), 1, a, b)
					errs[2] = l.Reset(t.Context(), b)
					if errs[0] == nil {
						errs[3] = l.Adjust(t.Context(), d, 0)
					} else {
						errs[3] = errs[0]
					}
					if g == 0 && i%10 == 0 {
						next := config
						next.Store = nil
						next.Rules = next.Rules[:1+i/10%2]
						if err := l.Reconfigure(next); err != nil && !errors.Is(err, core.ErrClosed) {
							t.Error(err)
						}
					}
					for _, err := range errs {
						if errors.Is(err, core.ErrUnknownRule) {
							continue
						}
						if err != nil && !errors.Is(err, core.ErrClosed) || after && err == nil {
							t.Errorf("after Close: %v, error %v", after, err)
							return
						}
					}
					if after {
						return
					}
				}
			})
		}
		wg.Go(func() {
			for m.Len() < 100 {
				runtime.Gosched()
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			close(closed)
		})
		wg.Wait()
		if m.Len() != 0 {
			t.Fatalf("%d keys are held after Close", m.Len())
		}
	}
}

// A store around a Memory may hand it a batch without room for the results. That
// is a panic of its own, which must not leave the shard of the key locked.
func TestABatchWithoutResultsLeavesTheStoreUsable(t *testing.T) {
	for name, limits := range map[string][]core.Limit{
		"one limit":  {core.PerHour(5)},
		"two limits": {core.PerHour(5), core.Limit{Quota: 9, Window: 24 * time.Hour}},
		"a log":      {{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known=%t", name, known), func(t *testing.T) {
				m := core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 100})) // one shard
				counters := core.Must(m.Open("l", []core.StoreRule{{Name: "r", Limits: limits}}))
				take := func(key string, results int) error {
					return counters.Do(t.Context(), &core.Batch{Op: core.OpTake, Items: []core.Item{{Key: []byte(key), Cost: 1, Results: make([]core.Result, results)}}})
				}
				if known {
					if err := take("k", len(limits)); err != nil {
						t.Fatal(err)
					}
				}
				func() {
					defer func() {
						if recover() == nil {
							t.Error("the panic is lost")
						}
					}()
					_ = take("k", 0)
				}()
				done := make(chan error)
				go func() { done <- take("another", len(limits)) }()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("a lock is still held")
				}
			})
		}
	}
}
