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
		if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.AddressAccount.Exceeded || st.RetryAfter <= 0 {
			t.Errorf("%d instances: %+v, %v", instances, st, err)
		}
	}
}
