package login_test

import (
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// A handler may panic after it has begun the response.
func TestAPanicIsAFailureWhateverTheStatusIs(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusInternalServerError} {
		var e trusts
		s := newSite(t, login.Config{OnEvent: e.event})
		for range 5 {
			r := form("203.0.113.1", "alice")
			s.guard.Settle(r, s.guard.Check(r), core.Outcome{Status: status, Panicked: true})
			if e.last.Kind != login.EventFailed {
				t.Errorf("status %d: event %v", status, e.last.Kind)
			}
		}
		s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
	}
}

// Config.Success is not asked about them.
func TestAProtocolUpgradeAndAServerErrorAreNeverFailures(t *testing.T) {
	s := newSite(t, login.Config{Success: func(o core.Outcome) bool { return o.Status == http.StatusOK }})
	for _, status := range []int{101, 500, 503, 599, 101, 500} {
		if got := s.serve(form("203.0.113.1", "alice"), status); got != status {
			t.Errorf("status %d, want %d", got, status)
		}
	}
	s.want(many(7, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:2]")
}

// It may be a decision of another limiter.
func TestADecisionThatIsNotTheGuardsCountsAsNothing(t *testing.T) {
	var events int
	s := newSite(t, login.Config{OnEvent: func(login.Event) { events++ }})
	r := form("203.0.113.1", "alice")
	for _, status := range []int{200, 401, 500} {
		s.guard.Settle(r, core.Decision{Allowed: true}, core.Outcome{Status: status})
	}
	if denial := s.guard.Deny(r, core.Decision{Reason: core.ReasonOverLimit}); denial.Status != http.StatusTooManyRequests {
		t.Errorf("denied with %+v", denial)
	}
	if st := s.guard.Stats(); events != 0 || st != (core.Stats{}) {
		t.Errorf("%d events, %+v", events, st)
	}
}
