package login_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

// A browser keeps it for months, through new versions of this package.
func TestADeviceCookieOfAnEarlierVersionIsTrusted(t *testing.T) {
	const made = "AAAAAGmbKAAAAAAAmez_gGgagadGzV7ZJ2y1pKJhV0vEp9mraYpFBZK_BXp6buesjq-2Dhq-Vlkpv6zD"
	var e trusts
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	s := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	s.serve(with(login.DefaultCookieName+"="+made, "203.0.113.1", "alice"), http.StatusUnauthorized)
	if e.last.Trust != "device" {
		t.Errorf("trusted by %q; a new cookie: %s", e.last.Trust, s.cookieOf("alice"))
	}
}

// The name of a guard and the account of a cookie are told apart, also if their texts are
// equal when they are joined.
func TestADeviceCookieIsOfOneGuardAndOneAccount(t *testing.T) {
	var e trusts
	ab := newSite(t, login.Config{Name: "ab", Secrets: [][]byte{secret}})
	a := newSite(t, login.Config{Name: "a", Secrets: [][]byte{secret}, OnEvent: e.event})
	a.serve(with(ab.cookieOf("c"), "203.0.113.1", "bc"), http.StatusUnauthorized)
	if e.last.Trust != "" {
		t.Errorf("a cookie of the guard ab and the account c is that of the guard a and the account bc")
	}
}
