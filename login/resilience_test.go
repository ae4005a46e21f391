package login_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// The guard puts a resilient store around a shared one. Its Clock and Log are those of the
// guard, unless Resilience has others.
func TestResilienceUsesTheGuardsClockAndLog(t *testing.T) {
	var log, other bytes.Buffer
	logger := func(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
	s := newSite(t, login.Config{
		Store: broken{}, Log: logger(&log),
		Failures: core.Limit{Quota: 2, Window: 15 * time.Minute, Algorithm: core.FixedWindow},
	})
	s.want(many(4, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:2 429:2]")
	s.clock.Advance(15 * time.Minute)
	s.want(many(4, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:2 429:2]")
	if !strings.Contains(log.String(), errGone.Error()) {
		t.Errorf("the guard's log does not say why the store fails: %s", &log)
	}

	log.Reset()
	s = newSite(t, login.Config{Store: broken{}, Log: logger(&log), Resilience: resilient.Config{Log: logger(&other)}})
	s.wrong("203.0.113.1", "alice")
	if !strings.Contains(other.String(), errGone.Error()) || log.Len() > 0 {
		t.Errorf("Resilience.Log has %q, Log has %q", &other, &log)
	}
	s.right("203.0.113.1", "alice")
	if strings.Contains(log.String(), "remembered") { // it follows from what has been logged
		t.Errorf("Log has %q", &log)
	}
}

// In an outage each of several instances allows its part of the failures, once. An
// account that nobody has unblocked is not pardoned.
func TestAnOutagePardonsNobody(t *testing.T) {
	for _, instances := range []int{1, 2, 3} {
		s := newSite(t, login.Config{
			Store: broken{}, Log: slog.New(slog.DiscardHandler), Resilience: resilient.Config{Instances: instances},
			Failures: core.Limit{Quota: 6, Window: 15 * time.Minute, Algorithm: core.FixedWindow},
		})
		want := 6 / instances
		s.want(many(12, func(int) int { return s.wrong("203.0.113.1", "alice") }), fmt.Sprintf("map[401:%d 429:%d]", want, 12-want))
		if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.AddressAccount.Denied || st.RetryAfter <= 0 {
			t.Errorf("%d instances: %+v, %v", instances, st, err)
		}
	}
}

// In an outage no address can be remembered, and package resilient has logged the outage. If the store answers
// other operations, the guard logs it.
func TestAnAddressThatIsNotRememberedInAnOutageIsNotLogged(t *testing.T) {
	for failures, want := range map[int]int{1: 0, 1000: 1} {
		var log bytes.Buffer
		store := newShared(t, core.MemoryConfig{})
		s := newSite(t, login.Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil)), Resilience: resilient.Config{OnFailure: resilient.FailClosed, Failures: failures}})
		end := s.begin(form("203.0.113.1", "alice"))
		store.gone.Store(true)
		s.want(many(2, func(int) int { return s.wrong("203.0.113.2", "bob") }), "map[503:2]")
		end(200)
		if got := strings.Count(log.String(), "could not be remembered"); got != want {
			t.Errorf("the circuit opens after %d failures: logged %d times, want %d: %s", failures, got, want, &log)
		}
	}
}
