package login_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// A login from a known address begins KnownFor again.
func TestALoginRenewsAKnownAddress(t *testing.T) {
	const day = 24 * time.Hour
	s := newSite(t, login.Config{})
	flood := func() { many(200, func(i int) int { return s.wrong(ip(i), "alice") }) }
	for range 3 {
		s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
		s.clock.Advance(10 * day)
		flood()
	}
	s.clock.Advance(5 * day)
	flood()
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
}

// It gets the quota of the cookie, and then the quota of its address for the account.
func TestAClientWithAUsedUpCookieCountsAsAStranger(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	r := s.withCookie(form("203.0.113.1", "alice"), "alice")
	s.want(many(13, func(int) int { return s.serve(r, http.StatusUnauthorized) }), "map[401:10 429:3]")
}

// Success is not called for a 5xx response and a protocol upgrade.
func TestA5xxIsNoSuccessAndASecondSettleDoesNothing(t *testing.T) {
	events := 0
	s := newSite(t, login.Config{
		Success: func(o core.Outcome) bool { return o.Status != http.StatusUnauthorized },
		OnEvent: func(login.Event) { events++ },
	})
	for _, status := range []int{401, 401, 401, 401, 500, 101, 401} {
		s.serve(form("203.0.113.1", "alice"), status)
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
	r := form("203.0.113.2", "bob")
	d := s.guard.Check(r)
	events = 0
	for range 3 {
		s.guard.Settle(r, d, core.Outcome{Status: 200})
	}
	if events != 1 {
		t.Errorf("%d events of one attempt", events)
	}
}

// The attempt does not reach the handler: the client might have closed only its own half of
// the connection, and could read the response without the delay.
func TestAClientThatLeavesDuringADelayHasFailed(t *testing.T) {
	var events []login.EventKind
	s := newSite(t, login.Config{AccountFailures: core.PerHour(3), SuspiciousAfter: 1, OnEvent: func(e login.Event) { events = append(events, e.Kind) },
		OnSuspicion: func(r core.Request, _ login.Suspicion) login.Verdict {
			if r.Context().Err() != nil {
				return login.Verdict{Delay: time.Hour}
			}
			return login.Verdict{}
		}})
	s.wrong(ip(1), "alice")
	r := form(ip(2), "alice")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errGone)
	r.ctx = ctx
	d := s.guard.Check(r)
	if got := s.guard.Deny(r, d).Status; d.Allowed || got != http.StatusServiceUnavailable || !errors.Is(d.Err, errGone) {
		t.Errorf("%v (%v) with status %d, want a denial with %d because of %v", d, d.Err, got, http.StatusServiceUnavailable, errGone)
	}
	if want := []login.EventKind{login.EventFailed, login.EventSuspected, login.EventCanceled}; !slices.Equal(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
	// It is one of the account's three failures.
	s.want(many(3, func(i int) int { return s.wrong(ip(3+i), "alice") }), "map[401:1 429:2]")
	if st := s.guard.Stats(); st.Allowed != 3 || st.Denied != 2 { // by the limits
		t.Errorf("%+v, want 3 allowed and 2 denied attempts", st)
	}
}
