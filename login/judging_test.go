package login_test

import (
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
)

// begin is an attempt that the handler begins to judge; end is called with the
// status of its answer.
func (s *site) begin(r *request) (end func(status int)) {
	s.t.Helper()
	d := s.guard.Check(r)
	if !d.Allowed {
		s.t.Fatalf("denied: %v", d)
	}
	return func(status int) { s.guard.Settle(r, d, core.Outcome{Status: status}) }
}

// The owner of the account changes the password and calls Forget, in this process or in
// another one, while a handler checks an attempt with the old password. The attempt
// succeeds. Its client is not trusted.
func TestAForgetWhileTheHandlerRunsEndsTheTrustOfTheAttempt(t *testing.T) {
	var e trusts
	here, there := newInstances(t, redistest.Start(t).Addr, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	trusted := func(cookie string) bool {
		here.serve(with(cookie, "192.0.2.99", "alice"), http.StatusUnauthorized)
		return e.last.Trust == "device"
	}
	known := func() bool {
		st, err := here.guard.Status(t.Context(), "alice", "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		return st.KnownAddress
	}
	for _, forgets := range []*site{here, there, here} {
		end := here.begin(form("192.0.2.1", "alice"))
		if err := forgets.guard.Forget(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		cookie := here.cookieOf("alice")
		end(http.StatusOK)
		if known() || trusted(cookie) {
			t.Errorf("an attempt from before Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
		}
		end = here.begin(form("192.0.2.1", "alice"))
		cookie = here.cookieOf("alice")
		end(http.StatusOK)
		if !known() || !trusted(cookie) {
			t.Errorf("an attempt after Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
		}
	}
	// The attempt came with a cookie that was trusted when it began.
	end := here.begin(with(here.cookieOf("alice"), "192.0.2.1", "alice"))
	if err := here.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	cookie := here.cookieOf("alice")
	end(http.StatusOK)
	if known() || trusted(cookie) {
		t.Errorf("an attempt with a cookie from before Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
	}
}

// If several attempts on an account are running, a cookie has the generation of the oldest
// one. An attempt that has ended does not count.
func TestACookieHasTheGenerationOfTheOldestRunningAttempt(t *testing.T) {
	var e trusts
	deny := false
	s := newSite(t, login.Config{
		Secrets: [][]byte{secret}, OnEvent: e.event, Attempts: core.PerMinute(1000), SuspiciousAfter: 1,
		OnSuspicion: func(core.Request, login.Suspicion) (v login.Verdict) {
			if deny {
				v.Deny = &core.Denial{}
			}
			return v
		},
	})
	trusted := func(user string) bool {
		cookie := s.cookieOf(user)
		s.serve(with(cookie, "192.0.2.99", user), http.StatusUnauthorized)
		return e.last.Trust == "device"
	}
	forget := func() {
		if err := s.guard.Forget(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
	}
	before, other := s.begin(form(ip(1), "alice")), s.begin(form(ip(2), "alice"))
	forget()
	after := s.begin(form(ip(3), "alice"))
	if trusted("alice") {
		t.Error("trusted, and an attempt from before Forget is judged")
	}
	if !trusted("bob") {
		t.Error("the cookie of another account is not trusted")
	}
	before(http.StatusOK)
	if trusted("alice") {
		t.Error("trusted, and another attempt from before Forget is judged")
	}
	other(http.StatusUnauthorized)
	if !trusted("alice") {
		t.Error("not trusted, and the attempt that is judged began after Forget")
	}
	before(http.StatusOK) // again
	forget()
	if trusted("alice") {
		t.Error("trusted, and the only attempt that is judged is from before Forget")
	}
	after(http.StatusInternalServerError)
	// An attempt that is denied is not judged.
	deny = true
	s.want(many(1, func(int) int { return s.wrong(ip(4), "alice") }), "map[429:1]")
	forget()
	if !trusted("alice") {
		t.Error("not trusted, and no attempt is judged")
	}
}
