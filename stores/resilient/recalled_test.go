package resilient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A denial from a cache between the circuit breaker and the store is no answer of
// the store: it neither ends a row of failures nor closes the circuit.
func TestARememberedDenialSaysNothingAboutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		cache := core.Must(denycache.New(f, denycache.Config{Longest: time.Minute}))
		// Open owes nothing, so that requests try the store.
		s := newStore(t, cache, resilient.Config{Meanwhile: resilient.ModeOpen, Failures: 3, Retry: time.Second})
		l := newLimiter(t, s, 2)
		other := func(key string) {
			t.Helper()
			if _, err := l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		denied := func() {
			t.Helper()
			asked := f.asked.Load()
			if d, err := take(l); err != nil || d.Allowed || f.asked.Load() != asked {
				t.Fatalf("%v, %v: want a denial that is remembered", d, err)
			}
		}
		for range 3 {
			_, _ = take(l)
		}
		f.fail(errGone)
		for _, key := range []string{"a", "b", "c"} {
			denied()
			other(key)
		}
		if s.Up() {
			t.Error("three failures with denials between them: the circuit is closed")
		}
		time.Sleep(2 * time.Second)
		denied()
		if s.Up() {
			t.Error("a denial was remembered when a probe was due: the circuit has closed")
		}
		f.fail(nil)
		other("d")
		if !s.Up() {
			t.Error("the probe after that succeeded: the circuit is open")
		}
	})
}
