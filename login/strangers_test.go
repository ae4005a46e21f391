package login_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestOneAddressIsLimitedOverAllAccounts(t *testing.T) {
	s := newSite(t, login.Config{})
	s.want(many(1000, func(i int) int { return s.wrong("203.0.113.1", fmt.Sprint("u", i)) }), "map[401:20 429:980]")
}

func TestOneAccountIsLimitedOverAllAddresses(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
	const guesses = 3000
	var reached []time.Time
	for i := range guesses {
		if s.wrong(ip(i), "alice") == http.StatusUnauthorized {
			reached = append(reached, s.clock.Now())
		}
		if i%500 == 499 {
			if got := s.right("192.0.2.1", "alice"); got != http.StatusOK {
				t.Errorf("the owner, at home, after %d guesses: %d", i, got)
			}
			if got := s.serve(s.withCookie(form("192.0.2.77", "alice"), "Alice "), http.StatusOK); got != http.StatusOK {
				t.Errorf("the owner, with a cookie, after %d guesses: %d", i, got)
			}
			if got := s.right("192.0.2.99", "alice"); got != http.StatusTooManyRequests {
				t.Errorf("a stranger, after %d guesses: %d", i, got)
			}
		}
		s.clock.Advance(3 * time.Second)
	}
	for i, from := range reached {
		n := 0
		for _, at := range reached[i:] {
			if at.Sub(from) < time.Hour {
				n++
			}
		}
		if n > 100 {
			t.Fatalf("%d guesses in one hour", n)
		}
	}
	if n := len(reached); n < 200 {
		t.Errorf("%d guesses in two and a half hours: the account is never free again", n)
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
