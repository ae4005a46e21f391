package resilient_test

import (
	"context"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// stacked is a store with a deadline of its own that notes who calls it.
type stacked struct {
	core.Store
	traits core.Traits
	stack  string
	wait   time.Duration
	fault  bool
}

func (s *stacked) Traits() core.Traits { return s.traits }

func (s *stacked) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return stackedBound{b, s}, err
}

type stackedBound struct {
	core.Bound
	s *stacked
}

func (b stackedBound) Take(ctx context.Context, batch *core.Batch) error {
	b.s.stack = string(debug.Stack())
	if b.s.fault {
		panic("fault")
	}
	if b.s.wait > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.s.wait):
		}
	}
	return b.Bound.Take(ctx, batch)
}

// A store that keeps a deadline is asked by the caller's goroutine; another one
// by a goroutine that may be left behind.
func TestAStoreWithADeadlineNeedsNoGoroutine(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		s := &stacked{Store: core.Must(core.NewMemory(core.MemoryConfig{})), traits: core.Traits{KeepsDeadline: keeps}}
		l := newLimiter(t, newStore(t, s, resilient.Config{Timeout: patience}), 100)
		if d, err := take(l); err != nil || d.Degraded {
			t.Fatalf("%v, %v", d, err)
		}
		if direct := strings.Contains(s.stack, t.Name()); direct != keeps {
			t.Errorf("keeps a deadline %v: asked by the caller %v", keeps, direct)
		}
		s.fault = true
		if d, err := take(l); err != nil || !d.Degraded || !d.Allowed {
			t.Errorf("keeps a deadline %v: after a panic: %v, %v", keeps, d, err)
		}
	}
}

// A Timeout that is shorter than the store's own deadline holds.
func TestAShorterTimeoutHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for timeout, want := range map[time.Duration]time.Duration{0: time.Second, 50 * time.Millisecond: 50 * time.Millisecond} {
			s := &stacked{Store: core.Must(core.NewMemory(core.MemoryConfig{})), traits: core.Traits{KeepsDeadline: true}, wait: time.Second}
			store := newStore(t, s, resilient.Config{Timeout: timeout, Failures: 1})
			l := newLimiter(t, store, 100)
			start := time.Now()
			d, err := take(l)
			if waited := time.Since(start); err != nil || !d.Allowed || d.Degraded != (timeout > 0) || waited != want || store.Up() != (timeout == 0) {
				t.Errorf("Timeout %v: %v, %v after %v, want %v", timeout, d, err, waited, want)
			}
		}
	})
}
