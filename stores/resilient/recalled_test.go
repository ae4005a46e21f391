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

// A denial from such a cache has the time of the process, and tells nothing about the
// clock of the store.
func TestARememberedDenialSaysNothingAboutTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, func() time.Time { return time.Now().Add(-10 * time.Hour) })
		s := newStore(t, core.Must(denycache.New(f, denycache.Config{Longest: time.Minute})), resilient.Config{Failures: 1})
		l := core.Must(core.New(core.Config{Name: "l", Store: s, Rules: []core.Rule{rule("user", fixed(2, time.Hour))}}))
		to := func(key string) (core.Decision, error) {
			return l.Take(context.Background(), 1, core.Hit{Rule: "user", Key: key})
		}
		d, err := to("alice")
		if err != nil || !d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
		for range 5 {
			if _, err := to("bob"); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Adjust(context.Background(), d, 0); err != nil {
			t.Fatal(err)
		}
		f.fail(errGone)
		allowed := 0
		for range 5 {
			if d, err := to("alice"); err != nil {
				t.Fatal(err)
			} else if d.Allowed {
				allowed++
			}
		}
		if allowed != 2 {
			t.Errorf("%d admitted in the outage, want 2: all was given back before", allowed)
		}
	})
}
