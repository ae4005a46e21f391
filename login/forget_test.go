package login_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

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
		cookies := []string{here.cookieOf("alice"), there.cookieOf("alice")}
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
	s := newSiteAt(t, clock, login.Config{Store: store, Resilience: resilient.Config{Timeout: 20 * time.Second}, Secrets: [][]byte{secret}, CookieFor: 28 * day})
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
	clock.Advance(27*day - time.Second)
	if got := s.trust(old, "alice"); got != "" {
		t.Errorf("trusted by %q, weeks after Forget", got)
	}
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

// trustModel knows what a guard should trust: what was given after the
// account's last Forget and has not expired.
type trustModel struct {
	given   []given
	forgets map[string][]time.Time
}

type given struct {
	account string
	at      time.Time
	cookie  string // "" for a known address
	address string
}

// Logins, password changes and waits over years, through three instances. Trust from before
// a Forget has ended. Trust from after the last Forget holds until it expires.
func TestForgetAgreesWithAModel(t *testing.T) {
	const (
		day     = 24 * time.Hour
		counted = 360 * day // for so long a Forget is in the account's counter at least,
		atMost  = 372 * day // and no longer than this
	)
	rapid.Check(t, func(r *rapid.T) {
		cookieFor := time.Duration(rapid.SampledFrom([]int{1, 90, 350}).Draw(r, "cookieFor")) * day
		knownFor := time.Duration(rapid.SampledFrom([]int{1, 14, 350}).Draw(r, "knownFor")) * day
		clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
		store := newShared(t, core.MemoryConfig{Clock: clock.Now})
		var sites []*site
		for range 3 {
			sites = append(sites, newSiteAt(t, clock, login.Config{
				Store: store, Secrets: [][]byte{secret}, CookieFor: cookieFor, KnownFor: knownFor, Attempts: core.PerMinute(core.MaxQuota),
				Resilience: resilient.Config{Timeout: time.Minute},
			}))
		}
		m := trustModel{forgets: map[string][]time.Time{}}
		pick := func() *site { return rapid.SampledFrom(sites).Draw(r, "instance") }
		account := func() string { return rapid.SampledFrom([]string{"alice", "bob"}).Draw(r, "account") }
		n := 0
		r.Repeat(map[string]func(*rapid.T){
			"give a cookie": func(*rapid.T) {
				a := account()
				m.given = append(m.given, given{account: a, at: clock.Now(), cookie: pick().cookieOf(a)})
			},
			"log in": func(*rapid.T) {
				n++
				a, address := account(), fmt.Sprintf("192.0.2.%d", n%250+1)
				for i := range m.given { // its time begins anew
					if m.given[i].address == address && m.given[i].account == a {
						m.given[i].at = time.Time{}
					}
				}
				pick().right(address, a)
				m.given = append(m.given, given{account: a, at: clock.Now(), address: address})
			},
			"forget": func(r *rapid.T) {
				a := account()
				if err := pick().guard.Forget(context.Background(), a); err != nil {
					r.Fatal(err)
				}
				m.forgets[a] = append(m.forgets[a], clock.Now())
				clock.Advance(time.Microsecond) // the model has no order within one instant
			},
			"wait": func(r *rapid.T) {
				clock.Advance(time.Duration(rapid.SampledFrom([]int64{
					int64(time.Second), int64(day), int64(13 * day), int64(89 * day), int64(90 * day), int64(349 * day), int64(359 * day), int64(373 * day),
				}).Draw(r, "wait")))
			},
			"": func(r *rapid.T) {
				if len(m.given) == 0 {
					return
				}
				g := rapid.SampledFrom(m.given).Draw(r, "given")
				s, now := pick(), clock.Now()
				var trusted bool
				valid := knownFor
				if g.cookie != "" {
					valid = cookieFor
					trusted = s.trust(g.cookie, g.account) == "device"
				} else {
					trusted = s.status(g.account, g.address).KnownAddress
				}
				if g.at.IsZero() {
					return
				}
				forgotten, lapsed, counts := false, false, false
				for _, f := range m.forgets[g.account] {
					forgotten = forgotten || !f.Before(g.at)
					lapsed = lapsed || now.Sub(f) >= counted && g.at.Sub(f) < atMost
					counts = counts || now.Sub(f) < atMost
				}
				switch want := now.Sub(g.at) < valid-time.Second && !forgotten; {
				case trusted && (forgotten || now.Sub(g.at) > valid+time.Second):
					r.Fatalf("trusted, and should not be: %+v", g)
				case !trusted && want && !(lapsed && (counts || g.cookie == "")):
					// The exception: a Forget has left the counter since.
					r.Fatalf("not trusted, and should be: %+v", g)
				}
			},
		})
	})
}
