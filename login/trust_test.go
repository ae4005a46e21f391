package login_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// What the guard asks the store, beside the take of each decision: one question for an
// attempt that reaches the handler, with a device cookie or without. None for an attempt that
// is denied because of its address before its body is read.
func TestTheStoreIsAskedForTrustOncePerAttempt(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Attempts: core.PerMinute(3)})
	good, forged := s.cookieOf("alice"), s.cookieOf("bob")
	memory := func() int64 { return store.asked["login-memory"].Load() }
	for name, row := range map[string]struct {
		r *request
	}{
		"none":                      {form("203.0.113.1", "alice")},
		"a cookie of somebody else": {with(forged, "203.0.113.2", "alice")},
		"a cookie":                  {with(good, "203.0.113.3", "alice")},
	} {
		for i := range 5 {
			before, status, asked := memory(), http.StatusUnauthorized, int64(1)
			if i > 2 {
				status, asked = http.StatusTooManyRequests, 0
			}
			if got := s.serve(row.r, http.StatusUnauthorized); got != status {
				t.Errorf("%s: status %d, want %d", name, got, status)
			}
			if n := memory() - before; n != asked {
				t.Errorf("%s: status %d: the store was asked %d times more, want %d", name, status, n, asked)
			}
		}
	}
	before := memory()
	s.serve(&request{ctx: t.Context(), method: http.MethodGet, peer: "203.0.113.9"}, http.StatusOK)
	if n := memory() - before; n != 0 {
		t.Errorf("the store was asked %d times for the page of the form", n)
	}
}

// All trusted clients of an account share one limit. Above it they count as strangers and get
// the same response as strangers.
func TestTrustedClientsHaveALimitTogether(t *testing.T) {
	var e trusts
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	var cookies []string
	for range 60 {
		cookies = append(cookies, s.cookieOf("alice"))
	}
	s.right("192.0.2.1", "alice") // becomes known
	// Ten cookies use up what the trusted clients have.
	s.want(many(50, func(i int) int {
		return s.serve(with(cookies[i/5], ip(i), "alice"), http.StatusUnauthorized)
	}), "map[401:50]")
	if e.last.Trust != "device" {
		t.Errorf("%+v", e.last)
	}
	st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1")
	if err != nil || !st.Trusted.Denied || st.Account.Remaining != 100 || !st.KnownAddress || st.RetryAfter != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	// Another cookie makes a stranger, and strangers are not denied yet.
	s.want(many(1, func(int) int { return s.serve(with(cookies[20], ip(60), "alice"), http.StatusUnauthorized) }), "map[401:1]")
	if e.last.Trust != "" {
		t.Errorf("%+v", e.last)
	}
	many(150, func(i int) int { return s.wrong(ip(100+i), "alice") })
	stranger := form(ip(300), "alice")
	d := s.guard.Check(stranger)
	want := s.guard.Deny(stranger, d)
	for name, r := range map[string]*request{
		"a cookie": with(cookies[30], ip(301), "alice"), "a known address": form("192.0.2.1", "alice"),
	} {
		d := s.guard.Check(r)
		told, got := e.last, s.guard.Deny(r, d)
		if d.Allowed || got.Status != want.Status || string(got.Body) != string(want.Body) || len(d.AppendHeaders(nil)) != len(s.guard.Check(stranger).AppendHeaders(nil)) {
			t.Errorf("%s: %+v, a stranger: %+v", name, got, want)
		}
		if told.Kind != login.EventDenied || told.Trust != "" {
			t.Errorf("%s: %+v", name, told)
		}
	}
	if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1"); err != nil || st.RetryAfter <= 0 || st.RetryAfter > st.Account.RetryAfter || st.RetryAfter > st.Trusted.RetryAfter {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.200"); err != nil || st.RetryAfter != st.Account.RetryAfter {
		t.Errorf("a stranger: %+v, %v", st, err)
	}
	// Other accounts are free, and so is this one when support unblocks it.
	s.want(many(1, func(int) int { return s.serve(with(s.cookieOf("bob"), ip(302), "bob"), http.StatusOK) }), "map[200:1]")
	if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1"); err != nil || st.Trusted.Remaining != 50 {
		t.Errorf("%+v, %v", st, err)
	}
	s.want(many(1, func(int) int { return s.serve(with(cookies[40], ip(303), "alice"), http.StatusUnauthorized) }), "map[401:1]")
	if e.last.Trust != "device" {
		t.Errorf("%+v", e.last)
	}
}

// It is a success of the address, as one through the guard is.
func TestTrustCountsASuccessElsewhere(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	for _, c := range []login.Config{{}, {ForgetAddresses: true}} {
		c.Store, c.Log = store, slog.New(slog.DiscardHandler)
		s := newSite(t, c)
		trust := func(user, address string) error { return s.guard.Trust(t.Context(), user, address) }
		many(9, func(int) int { return s.wrong("192.0.2.1", "alice") })
		if err := errors.Join(trust(" Alice", "192.0.2.1"), trust("bob", "192.0.2.2")); err != nil {
			t.Error(err)
		}
		for user, known := range map[string]bool{"alice": true, "bob": false} {
			if st, err := s.guard.Status(t.Context(), user, "192.0.2.1"); err != nil || st.AddressAccount.Remaining != 5 || st.KnownAddress != (known && !c.ForgetAddresses) {
				t.Errorf("%s: %+v, %v", user, st, err)
			}
		}
		if err := s.guard.Forget(t.Context(), "alice"); err != nil {
			t.Error(err)
		}
		if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1"); err != nil || st.KnownAddress {
			t.Errorf("after Forget: %+v, %v", st, err)
		}
		if trust("", "192.0.2.1") == nil || trust(" ", "192.0.2.1") == nil || trust("alice", "here") == nil || trust("alice", "192.0.2.1:80") == nil {
			t.Error("no error for an empty username or for what is no address")
		}
		store.gone.Store(true)
		if err := trust("alice", "192.0.2.1"); !errors.Is(err, core.ErrDegraded) {
			t.Errorf("the store does not answer: %v", err)
		}
		store.gone.Store(false)
	}
}

func TestAKnownAddressIsLimitedToo(t *testing.T) {
	s := newSite(t, login.Config{})
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(8, func(int) int { return s.wrong("192.0.2.1", "alice") }), "map[401:5 429:3]")
	s.clock.Advance(15 * 24 * time.Hour)
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]") // forgotten by now
}

func TestForgetAddressesMakesNoAddressKnown(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	before := newSite(t, login.Config{Store: store})
	before.right("192.0.2.1", "alice") // another configuration has remembered the address
	s := newSite(t, login.Config{Store: store, ForgetAddresses: true})
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
}

func TestALoginToAnotherAccountDoesNotMakeAClientTrusted(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	before := s.reached.Load()
	for i := range 100 {
		s.right(ip(300+i), "mallory")
		s.wrong(ip(300+i), "alice")
		s.serve(s.withCookie(form(ip(300+i), "alice"), "mallory"), http.StatusUnauthorized)
	}
	if n := s.reached.Load() - before; n != 100 { // the logins to mallory
		t.Errorf("%d attempts reached the handler, want 100", n)
	}
}

// The limits of strangers allow nothing, so that all guesses need a stolen cookie.
func TestAnAccountForTrustedClientsOnly(t *testing.T) {
	s := newSite(t, login.Config{
		Secrets: [][]byte{secret}, AccountFailures: core.Limit{Quota: 0, Window: time.Hour, Algorithm: core.FixedWindow},
		OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
			t.Error("a trusted client is suspected")
			return login.Verdict{}
		},
	})
	s.want(many(3, func(i int) int { return s.right(ip(i), "alice") }), "map[429:3]")
	s.want(many(1, func(int) int { return s.serve(with(s.cookieOf("alice"), ip(9), "alice"), http.StatusOK) }), "map[200:1]")
}

// One secret is enough for that.
func TestDeviceCookiesShareALimitIfNoAddressIsKnown(t *testing.T) {
	var e trusts
	s := newSite(t, login.Config{
		Secrets: [][]byte{secret}, ForgetAddresses: true, OnEvent: e.event,
		TrustedFailures: core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow},
	})
	for i, want := range []string{"device", "device", ""} {
		s.serve(with(s.cookieOf("alice"), ip(i), "alice"), http.StatusUnauthorized)
		if e.last.Trust != want {
			t.Errorf("cookie %d is trusted by %q, want %q", i, e.last.Trust, want)
		}
	}
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.Trusted.Denied {
		t.Errorf("%+v, %v", st, err)
	}
}

// A login from a known address begins KnownFor again.
func TestALoginRenewsAKnownAddress(t *testing.T) {
	const day = 24 * time.Hour
	s := newSite(t, login.Config{})
	flood := func() { many(200, func(i int) int { return s.wrong(ip(i), "alice") }) }
	for range 3 {
		s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
		s.clock.Advance(10 * day)
		flood()
	}
	s.clock.Advance(5 * day)
	flood()
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
}

// It gets the quota of the cookie, and then the quota of its address for the account.
func TestAClientWithAUsedUpCookieCountsAsAStranger(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	r := s.withCookie(form("203.0.113.1", "alice"), "alice")
	s.want(many(13, func(int) int { return s.serve(r, http.StatusUnauthorized) }), "map[401:10 429:3]")
}

// The client may leave as soon as it has the response.
func TestAnAddressIsRememberedAlthoughTheContextHasEnded(t *testing.T) {
	store, _ := private(t)
	s := newSite(t, login.Config{Store: store})
	r := form("203.0.113.1", "alice")
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	d := s.guard.Check(r)
	cancel()
	s.guard.Settle(r, d, core.Outcome{Status: http.StatusOK})
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.KnownAddress {
		t.Errorf("%+v, %v", st, err)
	}
}

// Otherwise every client without an address would be known after one of them has logged in.
func TestAnEmptyAddressDoesNotBecomeKnown(t *testing.T) {
	s := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), AccountFailures: core.PerHour(3), Attempts: core.PerMinute(1000)})
	from := func(client string) *request {
		r := form("203.0.113.1", "alice")
		if client != "" {
			r.header.Set("X-Client", client)
		}
		return r
	}
	s.serve(from(""), http.StatusOK)
	s.serve(from("at home"), http.StatusOK)
	for i := range 3 {
		s.serve(from(ip(i)), http.StatusUnauthorized)
	}
	if empty, home := s.serve(from(""), http.StatusOK), s.serve(from("at home"), http.StatusOK); empty != http.StatusTooManyRequests || home != http.StatusOK {
		t.Errorf("no address: %d, a known address: %d", empty, home)
	}
}
