package login_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
	var e trusts
	here, there := newInstances(t, redistest.Start(t).Addr, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	attempts := 0
	attempt := func(cookie, user, want string) {
		t.Helper()
		attempts++
		there.serve(with(cookie, ip(attempts), user), http.StatusOK) // an address that is not known
		if e.last.Trust != want {
			t.Errorf("%s is trusted by %q, want %q", user, e.last.Trust, want)
		}
	}
	known := func(user string, want bool) {
		t.Helper()
		if st, err := there.guard.Status(t.Context(), user, "192.0.2.1"); err != nil || st.KnownAddress != want {
			t.Errorf("%s: %+v, %v, want known %v", user, st, err, want)
		}
	}
	old := []string{here.cookieOf("alice"), there.cookieOf("alice")}
	bob := here.cookieOf("bob")
	here.right("192.0.2.1", "alice")
	here.right("192.0.2.1", "bob")
	for range 3 { // again and again
		for _, c := range old {
			attempt(c, "alice", "device")
		}
		known("alice", true)
		if err := here.guard.Forget(t.Context(), " Alice "); err != nil {
			t.Fatal(err)
		}
		for _, c := range old {
			attempt(c, "alice", "")
		}
		known("alice", false)
		attempt(bob, "bob", "device")
		known("bob", true)
		old = []string{here.cookieOf("alice"), there.cookieOf("alice")}
		here.right("192.0.2.1", "alice")
	}
	// The caller's client has hung up.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := here.guard.Forget(ctx, "alice"); err != nil {
		t.Error(err)
	}
	attempt(old[0], "alice", "")
	if err := here.guard.Forget(t.Context(), "nobody"); err != nil {
		t.Errorf("an account that does not exist: %v", err)
	}
}

// After Forget, a known address is denied while the account is over its limit. It is known
// again after another login.
func TestAForgottenAddressIsAStranger(t *testing.T) {
	s := newSite(t, login.Config{})
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
	if err := s.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
	s.clock.Advance(2 * time.Hour)
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
}

// Each of 6,000 Forgets ends all trust. When the counter of Forgets is full, no client is
// trusted until the counter has room again.
func TestAFullCounterOfForgetsEndsAllTrust(t *testing.T) {
	var e trusts
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event, Attempts: core.PerMinute(core.MaxQuota)})
	trusted := func(cookie string) bool {
		s.serve(with(cookie, "192.0.2.99", "alice"), http.StatusOK)
		return e.last.Trust != ""
	}
	for i := range 6000 {
		cookie := s.cookieOf("alice")
		if i < 1000 && !trusted(cookie) {
			t.Fatalf("a cookie is not trusted after the %d-th time", i)
		}
		if err := s.guard.Forget(t.Context(), "alice"); err != nil {
			t.Fatalf("the %d-th time: %v", i, err)
		}
		if trusted(cookie) {
			t.Fatalf("a cookie is trusted after the %d-th time", i)
		}
	}
	if trusted(s.cookieOf("alice")) {
		t.Error("the counter is full, and a cookie is trusted")
	}
	if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.99"); err != nil || st.KnownAddress {
		t.Errorf("%+v, %v", st, err)
	}
	s.clock.Advance(373 * 24 * time.Hour)
	if !trusted(s.cookieOf("alice")) {
		t.Error("a year later, a new cookie is not trusted")
	}
}

// If the counter of Forgets cannot be read, no client is trusted.
func TestADamagedCounterOfForgetsEndsAllTrust(t *testing.T) {
	var e trusts
	server := redistest.Start(t)
	s, _ := newInstances(t, server.Addr, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	if err := s.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close() //nolint:errcheck // of no interest any more
	keys, err := client.Keys(t.Context(), "*login-memory:forgotten*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys: %q, %v", keys, err)
	}
	cookie := s.cookieOf("alice")
	s.right("192.0.2.1", "alice")
	if err := client.Set(t.Context(), keys[0], "nonsense", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.serve(with(cookie, "192.0.2.99", "alice"), http.StatusOK)
	if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1"); err != nil || st.KnownAddress || e.last.Trust != "" {
		t.Errorf("%+v, %v, trusted by %q", st, err, e.last.Trust)
	}
	if err := s.guard.Forget(t.Context(), "alice"); err != nil {
		t.Error(err)
	}
}

// memcached keeps nothing for longer than 30 days. Trust must not last longer than the
// counter of Forgets.
func TestTrustOnMemcachedLastsAtMost27Days(t *testing.T) {
	const day = 24 * time.Hour
	server := memcachedtest.Start(t)
	clock := storetest.NewClock(time.Now().Truncate(time.Second))
	open := func() core.Store {
		return core.Must(memcachedstore.New([]string{server.Addr}, memcachedstore.Clock(clock.Now), memcachedstore.Timeout(10*time.Second), memcachedstore.AnotherInstance()))
	}
	for field, c := range map[string]login.Config{
		"CookieFor: 672h0m0s": {CookieFor: 28 * day}, "KnownFor: 672h0m0s": {KnownFor: 28 * day},
	} {
		c.Field, c.Secrets, c.Store, c.Name = "username", [][]byte{secret}, open(), strings.ToLower(field[:5])
		if _, err := login.NewGuard(c); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want an error that names %s", err, field)
		}
	}
	for name, c := range map[string]login.Config{
		"the-longest-cookie":  {Secrets: [][]byte{secret}, CookieFor: 27 * day},
		"the-longest-address": {KnownFor: 27 * day},
		"no-cookies":          {CookieFor: 60 * day},
		"failures-of-28-days": {Failures: core.Limit{Quota: 5, Window: 28 * day, Algorithm: core.FixedWindow}},
	} {
		c.Field, c.Store, c.Name = "username", open(), name
		if g, err := login.NewGuard(c); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	var e trusts
	s := newSiteAt(t, clock, login.Config{Store: open(), Resilience: resilient.Config{Timeout: 20 * time.Second}, Secrets: [][]byte{secret}, OnEvent: e.event})
	attempt := func(cookie, want string) {
		t.Helper()
		s.serve(with(cookie, "192.0.2.99", "alice"), http.StatusOK)
		if e.last.Trust != want {
			t.Errorf("trusted by %q, want %q", e.last.Trust, want)
		}
	}
	old := s.cookieOf("alice")
	made, err := s.guard.DeviceCookie(t.Context(), "alice")
	if err != nil || made.MaxAge != int(27*day/time.Second) {
		t.Errorf("%+v, %v", made, err)
	}
	attempt(old, "device")
	if err := s.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	attempt(old, "")
	attempt(s.cookieOf("alice"), "device")
	clock.Advance(27*day - time.Second)
	attempt(old, "")
}

// A cookie that was made after a Forget is valid before and after the Forget leaves its
// window.
func TestAForgetLeavesItsWindowWithoutEndingTrust(t *testing.T) {
	const day = 24 * time.Hour
	var e trusts
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, CookieFor: 350 * day, OnEvent: e.event})
	if err := s.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(348 * day)
	cookie := s.cookieOf("alice")
	for range 2 { // the Forget still counts, then it does not
		s.serve(with(cookie, "192.0.2.99", "alice"), http.StatusOK)
		if e.last.Trust != "device" {
			t.Errorf("trusted by %q, want by the cookie", e.last.Trust)
		}
		s.clock.Advance(30 * day)
	}
}
