package login_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// cookieOf returns the Cookie header of a new device cookie.
func (s *site) cookieOf(user string) string {
	s.t.Helper()
	return s.withCookie(form("192.0.2.250", user), user).header.Get("Cookie")
}

// with is an attempt with a Cookie header.
func with(cookie, ip, user string) *request {
	r := form(ip, user)
	r.header.Set("Cookie", cookie)
	return r
}

// trusts keeps the last event, whose Trust is why the client was trusted.
type trusts struct{ last login.Event }

func (e *trusts) event(ev login.Event) { e.last = ev }

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

// The waits are those of the account and of its trusted clients together.
func TestAKnownAddressWaitsForTheShorterOfTwoWaits(t *testing.T) {
	for name, c := range map[string]login.Config{
		"the trusted clients'": {AccountFailures: core.Limit{Quota: 3, Window: 5 * 60 * 60e9, Algorithm: core.FixedWindow}, TrustedFailures: core.Limit{Quota: 2, Window: 60 * 60e9, Algorithm: core.FixedWindow}},
		"the account's":        {AccountFailures: core.Limit{Quota: 3, Window: 60 * 60e9, Algorithm: core.FixedWindow}, TrustedFailures: core.Limit{Quota: 2, Window: 5 * 60 * 60e9, Algorithm: core.FixedWindow}},
	} {
		s := newSite(t, c)
		s.right("192.0.2.1", "alice")
		s.want(many(3, func(i int) int { return s.wrong(ip(i), "alice") }), "map[401:3]")
		s.want(many(3, func(int) int { return s.wrong("192.0.2.1", "alice") }), "map[401:2 429:1]")
		wait := s.guard.Check(form("192.0.2.1", "alice")).RetryAfter
		if wait <= 0 || wait > 60*60e9 {
			t.Errorf("%s: a wait of %v", name, wait)
		}
		s.clock.Advance(wait - 1000)
		s.want(many(1, func(int) int { return s.wrong("192.0.2.1", "alice") }), "map[429:1]")
		s.clock.Advance(1000)
		s.want(many(1, func(int) int { return s.wrong("192.0.2.1", "alice") }), "map[401:1]")
	}
}

// The limits allow an attempt that OnSuspicion denies.
func TestAnAttemptCountsOnceInStatsAndEvents(t *testing.T) {
	var denied, others, overruled int
	deny := false
	s := newSite(t, login.Config{
		Secrets: [][]byte{secret}, Attempts: core.PerMinute(10_000),
		OnEvent: func(e login.Event) {
			switch e.Kind {
			case login.EventDenied:
				denied++
			case login.EventSuspected:
			default:
				others++
			}
		},
		OnSuspicion: func(core.Request, login.Suspicion) (v login.Verdict) {
			if deny {
				overruled++
				v.Deny = &core.Denial{Status: http.StatusForbidden}
			}
			return v
		},
	})
	attempts := 0
	step := func(n int, f func(i int) int) {
		attempts += n
		many(n, f)
	}
	cookie := s.cookieOf("alice")
	step(1, func(int) int { return s.right("192.0.2.1", "alice") })
	step(20, func(int) int { return s.serve(with(cookie, "203.0.113.1", "alice"), http.StatusUnauthorized) }) // a used up cookie
	deny = true
	step(100, func(i int) int { return s.wrong(ip(i), "alice") })
	deny = false
	step(100, func(i int) int { return s.wrong(ip(200+i), "alice") })
	step(8, func(int) int { return s.wrong("192.0.2.1", "alice") }) // a known address
	if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	step(3, func(int) int { return s.wrong("203.0.113.1", "alice") }) // pardoned
	st := s.guard.Stats()
	if st.Allowed != uint64(s.reached.Load())+uint64(overruled) || overruled == 0 || st.Denied != uint64(attempts)-st.Allowed || st.Degraded != 0 || st.Failed != 0 {
		t.Errorf("%d attempts, of which %d reached the handler: %+v", attempts, s.reached.Load(), st)
	}
	if uint64(denied-overruled) != st.Denied || uint64(others+overruled) != st.Allowed {
		t.Errorf("%d were told as denied, %d as anything else: %+v", denied, others, st)
	}
}

// Another process may have called Forget meanwhile. An address is known again once the store
// answers.
func TestNoAddressIsKnownWhileTheStoreDoesNotAnswer(t *testing.T) {
	var e trusts
	store := newShared(t, core.MemoryConfig{})
	s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, OnEvent: e.event})
	cookie := s.cookieOf("alice")
	attempt := func(want string) {
		t.Helper()
		s.serve(with(cookie, "192.0.2.7", "alice"), http.StatusOK)
		if e.last.Trust != want {
			t.Errorf("trusted by %q, want %q", e.last.Trust, want)
		}
	}
	known := func(want bool) {
		t.Helper()
		if st, err := s.guard.Status(t.Context(), "alice", "192.0.2.1"); err != nil || st.KnownAddress != want {
			t.Errorf("known: %+v, %v, want %v", st, err, want)
		}
	}
	s.right("192.0.2.1", "alice")
	attempt("device")
	known(true)
	store.gone.Store(true)
	attempt("device")
	known(false)
	made, err := s.guard.DeviceCookie(t.Context(), "alice")
	if err != nil {
		t.Fatalf("no cookie can be made meanwhile: %v", err)
	}
	if err := s.guard.Forget(t.Context(), "alice"); err == nil {
		t.Error("Forget has told nobody, and says that all is well")
	}
	if st := s.guard.Stats(); st.Degraded == 0 || st.Degraded > st.Allowed+st.Denied {
		t.Errorf("%+v", st)
	}
	store.gone.Store(false)
	s = newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, OnEvent: e.event}) // it asks at once
	attempt("device")
	known(true)
	cookie = made.Name + "=" + made.Value
	attempt("device")
}

// A cookie is verified without the store. A Forget has no effect meanwhile, and the failures of
// the cookie are few.
func TestTheOwnerGetsInWithADeviceCookieWhileTheStoreDoesNotAnswer(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Log: slog.New(slog.DiscardHandler)})
	cookie, forgotten, other := s.cookieOf("alice"), s.cookieOf("carol"), s.cookieOf("bob")
	if err := s.guard.Forget(t.Context(), "carol"); err != nil {
		t.Fatal(err)
	}
	store.gone.Store(true)
	s.want(many(120, func(i int) int { return s.wrong(ip(i), "alice") }), "map[401:100 429:20]")
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
	for name, row := range map[string]struct{ cookie, want string }{
		"the owner": {cookie, "map[200:9]"}, "a cookie of another account": {other, "map[429:9]"}, "a forged cookie": {cookie[:len(cookie)-5] + "AAAAA", "map[429:9]"},
	} {
		if got := many(9, func(int) int { return s.serve(with(row.cookie, "192.0.2.1", "alice"), http.StatusOK) }); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
	s.want(many(9, func(i int) int {
		return s.serve(with(cookie, ip(200+i), "alice"), http.StatusUnauthorized)
	}), "map[401:5 429:4]")
	many(120, func(i int) int { return s.wrong(ip(300+i), "carol") })
	s.want(many(9, func(i int) int {
		return s.serve(with(forgotten, ip(500+i), "carol"), http.StatusUnauthorized)
	}), "map[401:5 429:4]")
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

// An attempt that is decided twice without the shared counters counts as one degraded
// decision.
func TestADegradedAttemptCountsOnce(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	store.only = "login"
	s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Resilience: resilient.Config{Failures: 1000}})
	cookie := s.cookieOf("alice")
	store.gone.Store(true)
	s.want(many(8, func(int) int { return s.serve(with(cookie, "203.0.113.1", "alice"), http.StatusUnauthorized) }), "map[401:8]")
	if st := s.guard.Stats(); st.Degraded != 8 || st.Allowed != 8 || st.Denied != 0 {
		t.Errorf("%+v", st)
	}
}

// The store is closed.
func TestDeviceCookieAndForgetReturnTheStoresError(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	s := newSite(t, login.Config{Store: memory, Secrets: [][]byte{secret}})
	if err := memory.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := s.guard.DeviceCookie(t.Context(), "alice"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("%v, %v", c, err)
	}
	if err := s.guard.Forget(t.Context(), "alice"); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Forget: %v", err)
	}
}
