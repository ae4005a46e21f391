package login_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/login"
)

// All trusted clients of an account share one limit. Above it they count as strangers and get
// the same response as strangers.
func TestTrustedClientsHaveALimitTogether(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	s.right("192.0.2.1", "alice") // becomes known
	// Ten cookies use up what the trusted clients have.
	cookie := ""
	s.want(many(50, func(i int) int {
		if i%5 == 0 {
			cookie = s.cookieOf("alice")
		}
		return s.serve(with(cookie, ip(i), "alice"), http.StatusUnauthorized)
	}), "map[401:50]")
	if st := s.status("alice", "192.0.2.1"); st.Trusted.Allowed || st.Account.Remaining != 100 || !st.KnownAddress || st.RetryAfter != 0 {
		t.Errorf("%+v", st)
	}
	// Another cookie makes a stranger, and strangers are not denied yet.
	cookie = s.cookieOf("alice")
	if s.want(many(1, func(int) int { return s.serve(with(cookie, ip(60), "alice"), http.StatusUnauthorized) }), "map[401:1]"); s.last.Load().Trust != "" {
		t.Errorf("%+v", s.last.Load())
	}
	many(150, func(i int) int { return s.wrong(ip(100+i), "alice") })
	stranger := form(ip(300), "alice")
	want := s.guard.Deny(stranger, s.guard.Check(stranger))
	for name, r := range map[string]*request{"a cookie": with(cookie, ip(301), "alice"), "a known address": form("192.0.2.1", "alice")} {
		d := s.guard.Check(r)
		got := s.guard.Deny(r, d)
		if d.Allowed || got.Status != want.Status || string(got.Body) != string(want.Body) || s.last.Load().Trust != "" {
			t.Errorf("%s: %+v, a stranger: %+v", name, got, want)
		}
	}
	if st := s.status("alice", "192.0.2.1"); st.RetryAfter <= 0 || st.RetryAfter > st.Account.RetryAfter || st.RetryAfter > st.Trusted.RetryAfter {
		t.Errorf("%+v", st)
	}
	// Other accounts are free, and so is this one when support unblocks it.
	if got := s.trust(s.cookieOf("bob"), "bob"); got != "device" {
		t.Errorf("another account: trusted by %q", got)
	}
	s.must(s.guard.Unblock(t.Context(), "alice"))
	if got := s.trust(cookie, "alice"); got != "device" {
		t.Errorf("trusted by %q after Unblock", got)
	}
}

// Trust is a success of the address, as one through the guard is.
func TestTrustCountsASuccessElsewhere(t *testing.T) {
	store, _ := private() // it does nothing for a context that has ended
	s := newSite(t, login.Config{Store: store})
	s.must(s.guard.Unblock(t.Context(), "alice")) // her failures have other keys now
	s.want(s.wrongs(9, "192.0.2.1", "alice")+s.wrongs(5, "192.0.2.3", "alice"), "map[401:5 429:4]map[401:5]")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	s.must(errors.Join(s.guard.Trust(gone, " Alice", "192.0.2.1"), s.guard.Trust(gone, "bob", "192.0.2.2")))
	if st := s.status("alice", "192.0.2.1"); st.AddressAccount.Remaining != 5 {
		t.Errorf("%+v", st)
	}
	s.wantKnown("192.0.2.1", "alice", true)
	s.wantKnown("192.0.2.1", "bob", false)
	s.must(s.guard.Forget(t.Context(), "alice"))
	s.wantKnown("192.0.2.1", "alice", false)
}

// A login from a known address begins KnownFor again.
func TestAKnownAddress(t *testing.T) {
	const day = 24 * time.Hour
	s := newSite(t, login.Config{})
	s.right("192.0.2.1", "alice")
	s.right("192.0.2.1", "alice")
	if st := s.status("alice", "192.0.2.1"); st.Trusted.Remaining != 50 {
		t.Errorf("a success counts as a failure: %+v", st)
	}
	for range 3 {
		s.clock.Advance(14*day - time.Second)
		s.flood(200, "alice")
		s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
	}
	s.want(s.wrongs(8, "192.0.2.1", "alice"), "map[401:5 429:3]")
	s.clock.Advance(14 * day)
	s.flood(200, "alice")
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
}

// The client may leave as soon as it has the response.
func TestAnAddressIsRememberedAlthoughTheContextHasEnded(t *testing.T) {
	store, _ := private()
	s := newSite(t, login.Config{Store: store})
	r := form("203.0.113.1", "alice")
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	end := s.begin(r)
	cancel()
	end(http.StatusOK)
	s.wantKnown("203.0.113.1", "alice", true)
	s.must(s.guard.Close())
	newSite(t, login.Config{Store: store, Name: "next"}) // Close leaves the store open
}
