package login_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/internal/memcachedtest"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/login"
	memcachedstore "github.com/floodgate-go/floodgate/stores/memcached"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A Forget on one instance ends the trust in all cookies and known addresses of the account
// at once on another instance, which has trusted them before.
func TestForgetEndsTrustOnAllInstances(t *testing.T) {
	here, there := newInstances(t, redistest.Start(t).Addr, login.Config{Secrets: [][]byte{secret}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	bob := here.cookieOf("bob")
	here.right("192.0.2.1", "bob")
	for range 3 { // again and again
		cookies := []string{here.cookieOf(" Alice"), there.cookieOf("alice")}
		here.right("192.0.2.1", "alice")
		for _, want := range []bool{true, false} {
			for _, c := range cookies {
				if got := there.trust(c, "alice"); (got == "device") != want {
					t.Errorf("a cookie is trusted by %q, want %t", got, want)
				}
			}
			there.wantKnown("192.0.2.1", "alice", want)
			here.must(here.guard.Forget(gone, " Alice "))
		}
	}
	there.wantKnown("192.0.2.1", "bob", true)
	if got := there.trust(bob, "bob"); got != "device" {
		t.Errorf("the cookie of another account is trusted by %q", got)
	}
	here.must(here.guard.Forget(t.Context(), "nobody"))
}

// Each of 6,000 Forgets ends all trust. When the counter of Forgets is full, no client is
// trusted until the counter has room again.
func TestAFullCounterOfForgetsEndsAllTrust(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, Attempts: core.PerMinute(core.MaxQuota)})
	for i := range 6000 {
		cookie := s.cookieOf("alice")
		if i < 1000 && s.trust(cookie, "alice") == "" {
			t.Fatalf("a cookie is not trusted after the %d-th time", i)
		}
		s.must(s.guard.Forget(t.Context(), "alice"))
		if s.trust(cookie, "alice") != "" {
			t.Fatalf("a cookie is trusted after the %d-th time", i)
		}
	}
	if s.trust(s.cookieOf("alice"), "alice") != "" {
		t.Error("the counter is full, and a cookie is trusted")
	}
	s.right("192.0.2.1", "alice")
	s.wantKnown("192.0.2.1", "alice", false)
	s.clock.Advance(373 * 24 * time.Hour)
	if s.trust(s.cookieOf("alice"), "alice") == "" {
		t.Error("a year later, a new cookie is not trusted")
	}
}

// memcached keeps nothing for longer than 30 days. Trust must not last longer than the
// counter of Forgets.
func TestTrustOnMemcachedLastsAtMost27Days(t *testing.T) {
	const day = 24 * time.Hour
	clock := storetest.NewClock(time.Now().Truncate(time.Second))
	store := core.Must(memcachedstore.New([]string{memcachedtest.Start(t).Addr}, memcachedstore.Clock(clock.Now), memcachedstore.Timeout(10*time.Second), memcachedstore.AnotherInstance()))
	s := newSiteAt(t, clock, login.Config{Store: store, Resilience: resilient.Config{Timeout: 20 * time.Second}, Secrets: [][]byte{secret}, CookieFor: 28 * day, KnownFor: 28 * day})
	made, err := s.guard.DeviceCookie(t.Context(), "alice")
	if err != nil || made.MaxAge != int(27*day/time.Second) {
		t.Errorf("%+v, %v", made, err)
	}
	old := s.cookieOf("alice")
	for _, want := range []string{"device", ""} {
		if got := s.trust(old, "alice"); got != want {
			t.Errorf("trusted by %q, want %q", got, want)
		}
		s.must(s.guard.Forget(t.Context(), "alice"))
	}
	s.right("192.0.2.1", "alice")
	clock.Advance(27*day - time.Second)
	if got := s.trust(old, "alice"); got != "" {
		t.Errorf("trusted by %q, weeks after Forget", got)
	}
	s.wantKnown("192.0.2.1", "alice", true)
	clock.Advance(time.Second)
	s.wantKnown("192.0.2.1", "alice", false)
}

// The owner of the account changes the password and calls Forget, in this process or in
// another one, while a handler checks an attempt with the old password. The attempt
// succeeds. Its address is not known.
func TestAForgetWhileTheHandlerRunsEndsTheTrustOfTheAttempt(t *testing.T) {
	here, there := newInstances(t, redistest.Start(t).Addr, login.Config{Secrets: [][]byte{secret}})
	for _, forgets := range []*site{here, there} {
		for _, forget := range []bool{true, false} {
			end := here.begin(form("192.0.2.1", "alice"))
			if forget {
				here.must(forgets.guard.Forget(t.Context(), "alice"))
			}
			end(http.StatusOK)
			here.wantKnown("192.0.2.1", "alice", !forget)
		}
	}
}

// The counter of Forgets keeps each for longer than the longest trust lasts, year after year.
func TestAForgetOutlastsAllTrust(t *testing.T) {
	const longest = 350 * 24 * time.Hour
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, CookieFor: longest, KnownFor: longest})
	for range 3 {
		old := s.cookieOf("alice")
		s.right("192.0.2.1", "alice")
		s.must(s.guard.Forget(t.Context(), "alice"))
		young := s.cookieOf("alice")
		s.right("192.0.2.2", "alice")
		s.clock.Advance(longest - time.Second)
		for cookie, want := range map[string]string{old: "", young: "device"} {
			if got := s.trust(cookie, "alice"); got != want {
				t.Errorf("trusted by %q, want %q", got, want)
			}
		}
		s.wantKnown("192.0.2.1", "alice", false)
		s.wantKnown("192.0.2.2", "alice", true)
		s.clock.Advance(30 * 24 * time.Hour)
	}
	// A cookie outlasts the Forget before it.
	s.must(s.guard.Forget(t.Context(), "bob"))
	s.clock.Advance(23 * 24 * time.Hour)
	late := s.cookieOf("bob")
	s.clock.Advance(longest - time.Second)
	if got := s.trust(late, "bob"); got != "device" {
		t.Errorf("trusted by %q", got)
	}
}
