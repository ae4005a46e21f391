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
