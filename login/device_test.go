package login_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

func TestDeviceCookies(t *testing.T) {
	old := []byte(strings.Repeat("o", 32))
	s := newSite(t, login.Config{Secrets: [][]byte{secret, old}, Attempts: core.PerMinute(10_000)})
	other := newSite(t, login.Config{Secrets: [][]byte{secret}, Name: "other"})
	rotated := newSite(t, login.Config{Secrets: [][]byte{old}})
	stranger := newSite(t, login.Config{Secrets: [][]byte{[]byte(strings.Repeat("x", 32))}})
	cookie := func(s *site, user string) string {
		c, err := s.guard.DeviceCookie(context.Background(), user)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Secure || !c.HttpOnly || c.Path != "/" || c.SameSite != http.SameSiteLaxMode || c.Valid() != nil || strings.Contains(c.Value, user) {
			t.Errorf("%+v", c)
		}
		return c.Value
	}
	many(200, func(i int) int { return s.wrong(ip(i), "alice") }) // strangers are denied now
	n := 500
	allowed := func(value string) bool {
		n++
		r := form(ip(n), "alice")
		r.header.Add("Cookie", login.DefaultCookieName+"="+value)
		return s.serve(r, http.StatusOK) == http.StatusOK
	}
	good := cookie(s, "alice")
	if !allowed(good) || !allowed(cookie(s, " ALICE ")) || !allowed(cookie(rotated, "alice")) {
		t.Error("a good cookie is not believed")
	}
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	for name, value := range map[string]string{
		"empty": "", "text": "nonsense", "of another account": cookie(s, "bob"), "of another guard": cookie(other, "alice"),
		"of another secret": cookie(stranger, "alice"), "twice": good + good, "cut": good[:len(good)-1], "padded": good + "=",
	} {
		if allowed(value) {
			t.Errorf("a cookie %s is believed", name)
		}
	}
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 1
		if allowed(base64.RawURLEncoding.EncodeToString(forged)) {
			t.Errorf("a cookie with byte %d changed is believed", i)
		}
	}
	// A thousand failures with one cookie: its own quota, then a stranger.
	reached := s.reached.Load()
	for range 1000 {
		n++
		r := form(ip(n), "alice")
		r.header.Add("Cookie", login.DefaultCookieName+"="+good)
		s.serve(r, http.StatusUnauthorized)
	}
	if got := s.reached.Load() - reached; got != 5 {
		t.Errorf("%d guesses with one cookie reached the handler, want 5", got)
	}
	if !allowed(cookie(s, "alice")) {
		t.Error("another cookie of the account is not believed any more")
	}
	s.clock.Advance(login.DefaultCookieFor - time.Second)
	many(200, func(i int) int { return s.wrong(ip(1600+i), "alice") })
	if !allowed(good) {
		t.Error("not believed a second before it expires")
	}
	s.clock.Advance(time.Second)
	if allowed(good) {
		t.Error("believed after it has expired")
	}
	if _, err := newSite(t, login.Config{}).guard.DeviceCookie(context.Background(), "alice"); !errors.Is(err, core.ErrConfig) {
		t.Errorf("without secrets: %v", err)
	}
}

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

// To replace a secret, the new one is put before the old one on each instance, and the old
// one is removed later.
func TestTheFirstSecretSignsAndAllSecretsAreAccepted(t *testing.T) {
	newest, oldest := []byte(strings.Repeat("n", 32)), []byte(strings.Repeat("o", 32))
	both := newSite(t, login.Config{Secrets: [][]byte{newest, oldest}})
	for name, row := range map[string]struct {
		secret []byte
		trust  string
	}{"the newest": {newest, "device"}, "the oldest": {oldest, ""}} {
		var e trusts
		one := newSite(t, login.Config{Secrets: [][]byte{row.secret}, OnEvent: e.event})
		one.serve(with(both.cookieOf("alice"), "203.0.113.1", "alice"), http.StatusUnauthorized)
		if e.last.Trust != row.trust {
			t.Errorf("a guard with %s secret trusts the cookie by %q, want %q", name, e.last.Trust, row.trust)
		}
	}
	// What is done to the caller's slice afterwards changes nothing.
	var e trusts
	mine := []byte(strings.Repeat("m", 32))
	s := newSite(t, login.Config{Secrets: [][]byte{mine}, OnEvent: e.event})
	cookie := s.cookieOf("alice")
	clear(mine)
	s.serve(with(cookie, "203.0.113.1", "alice"), http.StatusUnauthorized)
	if e.last.Trust != "device" {
		t.Errorf("trusted by %q", e.last.Trust)
	}
}

// Such a cookie was made with another configuration, or with a wrong clock.
func TestACookieThatIsValidForLongerThanCookieForIsNotTrusted(t *testing.T) {
	const hour = time.Hour
	for _, row := range []struct {
		made, now time.Duration // CookieFor when it was made, and now
		later     time.Duration
		trust     string
	}{
		{hour, hour, 0, "device"},
		{hour, hour - time.Second, 0, "device"}, // clocks are cut to seconds
		{hour, hour - 2*time.Second, 0, ""},
		{hour, hour - 2*time.Second, time.Second, "device"},
		{hour, 2 * hour, 0, "device"},
		{hour, 2 * hour, hour - 1, "device"},
		{hour, 2 * hour, hour, ""},
		{time.Second, time.Second, time.Second - 1, "device"},
		{time.Second, time.Second, time.Second, ""},
	} {
		var e trusts
		clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
		made := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, CookieFor: row.made})
		now := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, CookieFor: row.now, OnEvent: e.event})
		cookie := made.cookieOf("alice")
		clock.Advance(row.later)
		now.serve(with(cookie, "203.0.113.1", "alice"), http.StatusUnauthorized)
		if e.last.Trust != row.trust {
			t.Errorf("made for %v, used %v later where cookies are valid for %v: trusted by %q, want %q", row.made, row.later, row.now, e.last.Trust, row.trust)
		}
	}
	// A part of a second is cut off, so that no cookie is valid for longer.
	clock := storetest.NewClock(time.Unix(1_764_000_000, 999_999_000))
	s := newSiteAt(t, clock, login.Config{Secrets: [][]byte{secret}, CookieFor: time.Hour})
	c, err := s.guard.DeviceCookie(t.Context(), "alice")
	if err != nil || c.MaxAge != 3600 || !c.Expires.Equal(time.Unix(1_764_003_600, 0)) {
		t.Errorf("%+v, %v", c, err)
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
