package login_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

const deviceCookie = "__Host-device="

var otherSecret = []byte(strings.Repeat("o", 32))

func TestADeviceCookie(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 999_999_000))
	s := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}})
	c, err := s.guard.DeviceCookie(t.Context(), "alice")
	// A part of a second is cut off, so that no cookie is valid for longer.
	want := deviceCookie + c.Value + "; Path=/; Expires=Sun, 22 Feb 2026 16:00:00 GMT; Max-Age=7776000; HttpOnly; Secure; SameSite=Lax"
	if err != nil || c.String() != want || c.Valid() != nil || strings.Contains(c.Value, "alice") {
		t.Errorf("%s, %v, want %s", c, err, want)
	}
	c, err = newSite(t, login.Config{Secrets: [][]byte{secret}, InsecureCookie: true, CookieName: "device"}).guard.DeviceCookie(t.Context(), "alice")
	if err != nil || c.Secure || c.Name != "device" {
		t.Errorf("for development: %+v, %v", c, err)
	}
	guard := core.Must(login.NewGuard(login.Config{Field: "username", Secrets: [][]byte{secret}})) // without Clock
	if c, err := guard.DeviceCookie(t.Context(), "alice"); err != nil || time.Until(c.Expires) < 89*24*time.Hour || guard.Close() != nil {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := newSite(t, login.Config{}).guard.DeviceCookie(t.Context(), "alice"); !errors.Is(err, core.ErrConfig) {
		t.Errorf("without secrets: %v", err)
	}
}

func TestOnlyCookiesOfTheGuardAndTheAccountAreTrusted(t *testing.T) {
	secrets := [][]byte{secret, otherSecret}
	s := newSite(t, login.Config{Secrets: secrets})
	clear(secrets) // the guard has its own
	cookieBy := func(c login.Config) string { return newSite(t, c).cookieOf("alice") }
	good := s.cookieOf("alice")
	for name, cookie := range map[string]string{
		"its own": good, "of another spelling": s.cookieOf(" ALICE "), "of the second secret": cookieBy(login.Config{Secrets: [][]byte{otherSecret}}),
		"of an earlier version": deviceCookie + "AAAAAGmbKAAAAAAAmez_gGgagadGzV7ZJ2y1pKJhV0vEp9mraYpFBZK_BXp6buesjq-2Dhq-Vlkpv6zD",
	} {
		if got := s.trust(cookie, "alice"); got != "device" {
			t.Errorf("a cookie %s: trusted by %q", name, got)
		}
	}
	for name, cookie := range map[string]string{
		"empty": deviceCookie, "text": deviceCookie + "nonsense", "of another account": s.cookieOf("bob"),
		"of another guard": cookieBy(login.Config{Name: "other", Secrets: [][]byte{secret}}), "of another secret": cookieBy(login.Config{Secrets: [][]byte{[]byte(strings.Repeat("x", 32))}}),
		"twice": good + good[len(deviceCookie):], "cut": good[:len(good)-1], "padded": good + "=", "not base64": deviceCookie + strings.Repeat("!", len(good)-len(deviceCookie)),
	} {
		if got := s.trust(cookie, "alice"); got != "" {
			t.Errorf("a cookie %s: trusted by %q", name, got)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(good[len(deviceCookie):])
	s.must(err)
	for i := range raw {
		raw[i] ^= 1
		if got := s.trust(deviceCookie+base64.RawURLEncoding.EncodeToString(raw), "alice"); got != "" {
			t.Errorf("byte %d is changed: trusted by %q", i, got)
		}
		raw[i] ^= 1
	}
	// The texts are equal when they are joined.
	ab, a := newSite(t, login.Config{Name: "ab", Secrets: [][]byte{secret}}), newSite(t, login.Config{Name: "a", Secrets: [][]byte{secret}})
	if got := a.trust(ab.cookieOf("c"), "bc"); got != "" {
		t.Error("a cookie of the guard ab and the account c is that of the guard a and the account bc")
	}
	// The first secret signs.
	if got := newSite(t, login.Config{Secrets: [][]byte{otherSecret}}).trust(good, "alice"); got != "" {
		t.Error("the second secret has signed a cookie")
	}
}

// A cookie that is valid for longer than CookieFor was made with another configuration, or with
// a wrong clock.
func TestHowLongADeviceCookieIsValid(t *testing.T) {
	const hour = time.Hour
	for _, row := range []struct {
		made, now time.Duration // CookieFor when it was made, and now
		later     time.Duration
		trust     string
	}{
		{hour, hour - time.Second, 0, "device"}, // clocks are cut to seconds
		{hour, hour - 2*time.Second, 0, ""},
		{hour, hour - 2*time.Second, time.Second, "device"},
		{hour, 2 * hour, hour - 1, "device"},
		{hour, 2 * hour, hour, ""},
	} {
		clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
		made := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, CookieFor: row.made})
		now := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, CookieFor: row.now})
		cookie := made.cookieOf("alice")
		clock.Advance(row.later)
		if got := now.trust(cookie, "alice"); got != row.trust {
			t.Errorf("made for %v, used %v later where cookies are valid for %v: trusted by %q, want %q", row.made, row.later, row.now, got, row.trust)
		}
	}
}
