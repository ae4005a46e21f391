package login_test

import (
	"fmt"
	"net/http"
	"testing"

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
	// Who is known is not suspected.
	seen = nil
	s.right(ip(50), "alice")
	for i := range 10 {
		s.wrong(ip(200+i), "alice")
	}
	seen = nil
	s.right(ip(50), "alice")
	if len(seen) != 0 {
		t.Errorf("asked about a known address: %v", seen)
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
	for name, hook := range map[string]func() login.Verdict{
		"a denial": func() login.Verdict { return login.Verdict{Deny: &core.Denial{}} }, // no status
		"a panic":  func() login.Verdict { panic("hook") },
	} {
		asked := 0
		s := newSite(t, login.Config{AccountFailures: core.PerHour(10), OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
			asked++
			return hook()
		}})
		for i := range 5 {
			s.wrong(ip(i), "alice")
		}
		got := many(100, func(int) (status int) {
			defer func() { _ = recover() }()
			return s.wrong("203.0.113.7", "alice")
		})
		if asked != 20 {
			t.Errorf("%s: the hook was asked %d times by one address, want 20", name, asked)
		}
		if name == "a denial" {
			s.want(got, "map[429:100]")
		}
		if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.7"); err != nil || st.AddressAccount.Remaining != 5 || st.Account.Remaining != 5 {
			t.Errorf("%s has cost the account: %+v, %v", name, st, err)
		}
	}
}

func TestAPanicOfOnSuspicionRefundsTheAttempt(t *testing.T) {
	panics := false
	s := newSite(t, login.Config{AccountFailures: core.PerHour(4), OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
		if panics {
			panic("hook")
		}
		return login.Verdict{}
	}})
	s.wrong(ip(0), "alice")
	s.wrong(ip(1), "alice")
	panics = true
	for i := range 10 {
		func() {
			defer func() { _ = recover() }()
			s.wrong(ip(10+i), "alice")
		}()
	}
	panics = false
	s.want(many(3, func(i int) int { return s.wrong(ip(30+i), "alice") }), "map[401:2 429:1]")
}
