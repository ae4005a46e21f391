package resilient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// hang runs a test with a store that does not answer.
func hang(t *testing.T, test func(t *testing.T, s *resilient.Store, takeWithin func(ctx context.Context) (core.Decision, error))) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		f.hang.Store(true)
		// Open owes nothing, so that requests try the store.
		s := newStore(t, f, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 5, Retry: time.Second, Timeout: 100 * time.Millisecond})
		l := newLimiter(t, s, 1000)
		test(t, s, func(ctx context.Context) (core.Decision, error) {
			return l.Take(ctx, 1, core.Hit{Rule: "user", Key: "alice"})
		})
		close(f.end)
	})
}

func TestADeadlineThatIsNearerThanTheStoresOpensTheCircuit(t *testing.T) {
	hang(t, func(t *testing.T, s *resilient.Store, takeWithin func(context.Context) (core.Decision, error)) {
		waited := 0
		try := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			if d, err := takeWithin(ctx); err != nil || !d.Allowed || !d.Degraded {
				t.Errorf("%v, %v: want a decision of this process", d, err)
			}
			if time.Since(began) > 0 {
				waited++
			}
		}
		for range 20 {
			try()
		}
		if s.Up() || waited != 5 {
			t.Errorf("up %v, %d of 20 takes have waited: want the circuit open after 5", s.Up(), waited)
		}
		time.Sleep(2 * time.Second)
		waited = 0
		for range 20 {
			try()
		}
		if s.Up() || waited != 1 {
			t.Errorf("up %v, %d of 20 takes have waited: want one to try the store", s.Up(), waited)
		}
	})
}

// A probe that has no time says so too: the next one comes after a pause.
func TestProbesInAHurryDoNotFollowOneAnother(t *testing.T) {
	hang(t, func(t *testing.T, s *resilient.Store, takeWithin func(context.Context) (core.Decision, error)) {
		for range 5 {
			_, _ = takeWithin(t.Context())
		}
		time.Sleep(2 * time.Second)
		waited := 0
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			began := time.Now()
			if d, err := takeWithin(ctx); err != nil || !d.Degraded {
				t.Errorf("%v, %v", d, err)
			}
			if cancel(); time.Since(began) > 0 {
				waited++
			}
		}
		if s.Up() || waited != 1 {
			t.Errorf("up %v, %d of 20 takes have waited: want one", s.Up(), waited)
		}
	})
}

// The store is not blamed for callers that give it no time, or go away.
func TestCallersInAHurryDoNotOpenTheCircuit(t *testing.T) {
	hang(t, func(t *testing.T, s *resilient.Store, takeWithin func(context.Context) (core.Decision, error)) {
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			if d, err := takeWithin(ctx); err != nil || !d.Allowed || !d.Degraded {
				t.Errorf("%v, %v: want a decision of this process", d, err)
			}
			cancel()
		}
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				time.Sleep(50 * time.Millisecond)
				cancel()
			}()
			if _, err := takeWithin(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the client has gone: %v", err)
			}
		}
		if !s.Up() {
			t.Error("the circuit is open")
		}
	})
}
