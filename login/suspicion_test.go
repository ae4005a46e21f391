package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestSuspicion(t *testing.T) {
	var seen []int64
	verdict := login.Verdict{}
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(10),
		OnSuspicion: func(r core.Request, sus login.Suspicion) login.Verdict {
			if r.Method() != http.MethodPost || sus.Username != "alice" || sus.Limit != 10 || !sus.Suspicious {
				t.Errorf("%+v", sus)
			}
			seen = append(seen, sus.Failures)
			return verdict
		},
	})
	for i := range 7 {
		s.wrong(ip(i), "alice")
	}
	if fmt.Sprint(seen) != "[5 6]" {
		t.Errorf("asked at %v failures, want 5 and 6", seen)
	}
	// The handler sees it too.
	r := form(ip(50), "alice")
	d := s.guard.Check(r)
	if got := login.SuspicionOf(d); !got.Suspicious || got.Failures != 7 {
		t.Errorf("the handler sees %+v", got)
	}
	s.guard.Settle(r, d, core.Outcome{Status: 200})
	if got := login.SuspicionOf(core.Decision{}); got.Suspicious {
		t.Error("suspicion of nothing")
	}
	// A denial is the application's, and costs nothing.
	verdict.Deny = &core.Denial{Status: 403, Body: []byte("captcha")}
	reached := s.reached.Load()
	for i := range 30 {
		r := form(ip(60+i), "alice")
		d := s.guard.Check(r)
		if d.Allowed || string(s.guard.Deny(r, d).Body) != "captcha" {
			t.Fatalf("%+v", d)
		}
		for _, h := range d.AppendHeaders(nil) {
			if h.Name == "Retry-After" {
				t.Error("a captcha is not asked for later")
			}
		}
	}
	verdict.Deny = nil
	if s.wrong(ip(99), "alice") != 401 || s.reached.Load() != reached+1 {
		t.Error("denied attempts were counted")
	}
}

// OnSuspicion is not called for a known address and for a device cookie, also while
// strangers are not denied yet.
func TestATrustedClientIsNotSuspected(t *testing.T) {
	asked := 0
	var e trusts
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(10), Secrets: [][]byte{secret}, OnEvent: e.event,
		OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
			asked++
			return login.Verdict{Deny: &core.Denial{Status: http.StatusForbidden}}
		},
	})
	s.right(ip(50), "alice")
	for i := range 6 {
		s.wrong(ip(i), "alice")
	}
	if asked != 1 {
		t.Fatalf("asked %d times about strangers, want 1", asked)
	}
	r := form(ip(50), "alice")
	d := s.guard.Check(r)
	if !d.Allowed || login.SuspicionOf(d) != (login.Suspicion{}) {
		t.Errorf("a known address: %v, %+v", d, login.SuspicionOf(d))
	}
	s.guard.Settle(r, d, core.Outcome{Status: http.StatusOK})
	if e.last.Trust != "address" {
		t.Errorf("a known address is trusted by %q", e.last.Trust)
	}
	s.want(many(1, func(int) int { return s.serve(s.withCookie(form(ip(60), "alice"), "alice"), 200) }), "map[200:1]")
	if asked != 1 {
		t.Errorf("asked %d times about who is known", asked-1)
	}
}

// The attempts of a client that ignores captchas are charged to its address.
func TestTheLimitOfTheAddressLimitsCallsOfOnSuspicion(t *testing.T) {
	asked := 0
	s := newSite(t, login.Config{AccountFailures: core.PerHour(10), OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
		asked++
		return login.Verdict{Deny: &core.Denial{}} // no status
	}})
	for i := range 5 {
		s.wrong(ip(i), "alice")
	}
	s.want(many(100, func(int) int { return s.wrong("203.0.113.7", "alice") }), "map[429:100]")
	if asked != 20 {
		t.Errorf("the hook was asked %d times by one address, want 20", asked)
	}
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.7"); err != nil || st.AddressAccount.Remaining != 5 || st.Account.Remaining != 5 {
		t.Errorf("it has cost the account: %+v, %v", st, err)
	}
}

// By default, an account is suspicious from half of the quota on, rounded up.
func TestSuspicionBeginsAtHalfOfTheQuota(t *testing.T) {
	for quota, from := range map[int64]int64{10: 5, 9: 5, 1: 1, 2: 1} {
		var first int64 = -1
		s := newSite(t, login.Config{AccountFailures: core.PerHour(quota), OnSuspicion: func(_ core.Request, sus login.Suspicion) login.Verdict {
			if first < 0 {
				first = sus.Failures
			}
			return login.Verdict{}
		}})
		many(int(quota)+2, func(i int) int { return s.wrong(ip(i), "alice") })
		if want := from; quota > 1 && first != want || quota == 1 && first != -1 { // of one attempt, none has failed before
			t.Errorf("a quota of %d: suspicious from %d on, want %d", quota, first, want)
		}
	}
}

func TestCheckWaitsForTheDelayOfAVerdict(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{-time.Second: 0, 0: 0, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, login.Config{SuspiciousAfter: 1, OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
				return login.Verdict{Delay: delay}
			}})
			s.wrong("203.0.113.1", "alice")
			begun := time.Now()
			if got := s.wrong("203.0.113.2", "alice"); got != http.StatusUnauthorized {
				t.Errorf("status %d", got)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("a delay of %v took %v, want %v", delay, took, want)
			}
		})
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

// The application has denied the attempt, whoever is there to read that.
func TestADenialIsNoFailureEvenIfTheClientLeavesDuringTheDelay(t *testing.T) {
	var events []login.Event
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(3), SuspiciousAfter: 1, OnEvent: func(e login.Event) { events = append(events, e) },
		OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
			return login.Verdict{Delay: time.Hour, Deny: &core.Denial{Status: http.StatusForbidden}}
		},
	})
	s.wrong(ip(1), "alice")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := form(ip(2), "alice")
	r.ctx = ctx
	if got := s.serve(r, http.StatusOK); got != http.StatusForbidden {
		t.Errorf("status %d", got)
	}
	if len(events) != 3 || events[1].Kind != login.EventSuspected || events[2].Kind != login.EventDenied || events[2].Rule != "" || events[2].RetryAfter != 0 {
		t.Errorf("events %+v", events)
	}
	if st, err := s.guard.Status(t.Context(), "alice", ip(2)); err != nil || st.Account.Remaining != 2 || st.AddressAccount.Remaining != 5 {
		t.Errorf("%+v, %v", st, err)
	}
}
