package login_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// Two pairs of address and account have two counters, also if their texts are equal when
// they are joined.
func TestDifferentAddressesAndAccountsDoNotShareCounters(t *testing.T) {
	s := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), Attempts: core.PerMinute(1000)})
	attempt := func(client, user string, status int) int {
		r := form("203.0.113.1", user)
		r.header.Set("X-Client", client)
		return s.serve(r, status)
	}
	pairs := [][2]string{{"ab", "c"}, {"a", "bc"}, {"2001:db8::1", "bob"}, {"2001:db8::", "1bob"}, {"1", "0:x"}, {"10", ":x"}, {"\x01a", "b"}, {"a\x01", "b"}}
	for _, p := range pairs {
		s.want(many(7, func(int) int { return attempt(p[0], p[1], http.StatusUnauthorized) }), "map[401:5 429:2]")
	}
	// So is what is known of them.
	known := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), AccountFailures: core.Limit{Quota: 1, Window: time.Hour, Algorithm: core.FixedWindow}})
	s = known
	attempt("ab", "c", http.StatusOK)
	for _, user := range []string{"c", "bc"} {
		attempt("x", user, http.StatusUnauthorized)
	}
	if a, b := attempt("ab", "c", http.StatusOK), attempt("a", "bc", http.StatusOK); a != http.StatusOK || b != http.StatusTooManyRequests {
		t.Errorf("the known address: %d, another with another account: %d", a, b)
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

// An Unblock lasts as long as an address could be denied before it: for Failures.Window,
// Lockout.Max or Lockout.First.
func TestAnUnblockLastsAsLongAsTheLongestDenial(t *testing.T) {
	const hour = time.Hour
	for _, row := range []struct {
		failures core.Limit
		lasts    time.Duration
	}{
		{core.Limit{Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 30 * time.Second, Factor: 1000, Max: 6 * hour, Decay: 12 * hour}}, 6 * hour},
		{core.Limit{Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: 5 * hour, Factor: 1, Decay: 12 * hour}}, 5 * hour},
		{core.Limit{Quota: 1, Window: 4 * hour, Algorithm: core.FixedWindow}, 4 * hour},
		{core.Limit{Quota: 1, Window: 30 * 24 * hour, Algorithm: core.FixedWindow}, 30 * 24 * hour},
	} {
		s := newSite(t, login.Config{Failures: row.failures, Attempts: core.PerMinute(1000)})
		until := func(end time.Duration) { // the address is denied for as long as that, at least
			for range 10 {
				wait := s.guard.Check(form("203.0.113.1", "alice")).RetryAfter
				if wait >= end {
					return
				}
				s.clock.Advance(wait)
				s.wrong("203.0.113.1", "alice")
			}
		}
		until(row.lasts - time.Second)
		if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(row.lasts - 2*time.Second)
		if got := s.wrong("203.0.113.1", "alice"); got != http.StatusUnauthorized {
			t.Errorf("%+v: %v after Unblock: %d", row.failures, row.lasts-2*time.Second, got)
		}
	}
}

// The guard does not ask the store again for a second if an address is not known or an
// account is not unblocked. A login and an Unblock in the same process end that second.
func TestALoginAndAnUnblockInThisProcessTakeEffectAtOnce(t *testing.T) {
	var e trusts
	s := newSite(t, login.Config{
		Secrets: [][]byte{secret}, OnEvent: e.event, Attempts: core.PerMinute(1000),
		AccountFailures: core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow},
	})
	many(3, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(2, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:2]") // not known
	s.want(many(1, func(int) int { return s.serve(with(s.cookieOf("alice"), "192.0.2.1", "alice"), http.StatusOK) }), "map[200:1]")
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]") // known, in the same moment
	if e.last.Trust != "address" {
		t.Errorf("trusted by %q", e.last.Trust)
	}
	many(6, func(int) int { return s.wrong("203.0.113.1", "bob") })
	s.want(many(2, func(int) int { return s.wrong("203.0.113.1", "bob") }), "map[429:2]") // not unblocked
	if err := s.guard.Unblock(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	s.want(many(1, func(int) int { return s.wrong("203.0.113.1", "bob") }), "map[401:1]") // unblocked, in the same moment
}

// The first and the last value of each range is accepted, and the next one is an error.
func TestRangesOfTheConfiguration(t *testing.T) {
	const day = 24 * time.Hour
	for name, row := range map[string]struct {
		c  login.Config
		ok bool
	}{
		"the shortest cookie": {login.Config{CookieFor: time.Second}, true}, "a shorter one": {login.Config{CookieFor: time.Second - 1}, false},
		"the longest cookie": {login.Config{CookieFor: 350 * day}, true}, "a longer one": {login.Config{CookieFor: 350*day + 1}, false},
		"the shortest memory": {login.Config{KnownFor: time.Second}, true}, "a shorter memory": {login.Config{KnownFor: time.Second - 1}, false},
		"the longest memory": {login.Config{KnownFor: 350 * day}, true}, "a longer memory": {login.Config{KnownFor: 350*day + 1}, false},
		"the shortest secret": {login.Config{Secrets: [][]byte{make([]byte, login.MinSecret)}}, true}, "a shorter secret": {login.Config{Secrets: [][]byte{secret, make([]byte, login.MinSecret-1)}}, false},
		"suspicion from the first failure": {login.Config{SuspiciousAfter: 1}, true}, "a negative SuspiciousAfter": {login.Config{SuspiciousAfter: -1}, false},
		"an insecure cookie":     {login.Config{InsecureCookie: true, CookieName: "device"}, true},
		"a cookie of a host":     {login.Config{InsecureCookie: true, CookieName: "__Host-x"}, false},
		"a secure cookie":        {login.Config{InsecureCookie: true, CookieName: "__Secure-x"}, false},
		"an invalid cookie name": {login.Config{CookieName: "a=b"}, false},
		"several methods":        {login.Config{Methods: []string{"GET", "POST"}}, true},
		"no method":              {login.Config{Methods: []string{"GET", ""}}, false},
	} {
		row.c.Field = "username"
		g, err := login.NewGuard(row.c)
		if (err == nil) != row.ok || err != nil && !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = g.Close()
		}
	}
	if _, err := login.NewGuard(login.Config{Sources: []core.KeyFunc{keyfuncs.Static("x"), nil}}); err == nil || !strings.Contains(err.Error(), "Sources[1]") {
		t.Errorf("a source that is nil: %v", err)
	}
}

// By default, an account is suspicious from half of the quota on, rounded up.
func TestSuspicionBeginsAtHalfOfTheQuota(t *testing.T) {
	for quota, from := range map[int64]int64{10: 5, 9: 5, 1: 1, 2: 1} {
		var first int64 = -1
		s := newSite(t, login.Config{AccountFailures: core.PerHour(quota), OnSuspicion: func(_ core.Request, sus login.Suspicion) login.Verdict {
			if first < 0 {
				first = sus.Failures
			}
			return login.Verdict{}
		}})
		many(int(quota)+2, func(i int) int { return s.wrong(ip(i), "alice") })
		if want := from; quota > 1 && first != want || quota == 1 && first != -1 { // of one attempt, none has failed before
			t.Errorf("a quota of %d: suspicious from %d on, want %d", quota, first, want)
		}
	}
}

// The hashes depend on the first secret and on the account or the address, and on nothing
// else.
func TestEventsHaveKeyedHashesOfAccountsAndAddresses(t *testing.T) {
	event := func(secrets [][]byte, ip, user string) login.Event {
		var e trusts
		newSite(t, login.Config{Secrets: secrets, OnEvent: e.event}).wrong(ip, user)
		return e.last
	}
	a := event([][]byte{secret}, "203.0.113.1", "alice")
	if b := event([][]byte{secret, []byte(strings.Repeat("o", 32))}, "203.0.113.1", " ALICE "); b.Account != a.Account || b.Address != a.Address {
		t.Errorf("%+v and %+v differ", a, b)
	}
	for name, b := range map[string]login.Event{
		"another account": event([][]byte{secret}, "203.0.113.1", "bob"), "another secret": event([][]byte{[]byte(strings.Repeat("o", 32))}, "203.0.113.1", "alice"), "no secret": event(nil, "203.0.113.1", "alice"),
	} {
		if b.Account == a.Account || len(b.Account) != 32 {
			t.Errorf("%s: %+v and %+v", name, a, b)
		}
	}
	// An audit log keeps them.
	if a.Account != "240ec5925506bafb7ab815860d621b12" || a.Address != "62c36cfd9d47949b5922bfc5c9653531" {
		t.Errorf("the hashes have changed: %+v", a)
	}
	if b, c := event(nil, "203.0.113.1", "alice"), event(nil, "203.0.113.1", "alice"); b.Account == c.Account || b.Address == c.Address {
		t.Errorf("without a secret: %+v and %+v", b, c)
	}
	if b := event([][]byte{secret}, "203.0.113.2", "alice"); b.Address == a.Address || b.Account != a.Account {
		t.Errorf("another address: %+v and %+v", a, b)
	}
	// An account has another hash than an address of the same text.
	var e trusts
	newSite(t, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event}).wrong("203.0.113.1", "203.0.113.1")
	if e.last.Account == e.last.Address {
		t.Errorf("%+v", e.last)
	}
	for kind, want := range map[login.EventKind]string{login.EventDenied: "denied", login.EventFailed: "failed", login.EventSucceeded: "succeeded", login.EventSuspected: "suspected", login.EventCanceled: "canceled", 200: "unknown"} {
		if got := fmt.Sprint(kind); got != want {
			t.Errorf("%d is %q", kind, got)
		}
	}
}
