package login_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
	var e trusts
	s := newSiteAt(t, clock, login.Config{Store: open(), Resilience: resilient.Config{Timeout: 20 * time.Second}, Secrets: [][]byte{secret}, CookieFor: 28 * day, OnEvent: e.event})
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

// The owner of the account changes the password and calls Forget, in this process or in
// another one, while a handler checks an attempt with the old password. The attempt
// succeeds. Its client is not trusted.
func TestAForgetWhileTheHandlerRunsEndsTheTrustOfTheAttempt(t *testing.T) {
	var e trusts
	here, there := newInstances(t, redistest.Start(t).Addr, login.Config{Secrets: [][]byte{secret}, OnEvent: e.event})
	trusted := func(cookie string) bool {
		here.serve(with(cookie, "192.0.2.99", "alice"), http.StatusUnauthorized)
		return e.last.Trust == "device"
	}
	known := func() bool {
		st, err := here.guard.Status(t.Context(), "alice", "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		return st.KnownAddress
	}
	for _, forgets := range []*site{here, there, here} {
		end := here.begin(form("192.0.2.1", "alice"))
		if err := forgets.guard.Forget(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		cookie := here.cookieOf("alice")
		end(http.StatusOK)
		if known() || trusted(cookie) {
			t.Errorf("an attempt from before Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
		}
		end = here.begin(form("192.0.2.1", "alice"))
		cookie = here.cookieOf("alice")
		end(http.StatusOK)
		if !known() || !trusted(cookie) {
			t.Errorf("an attempt after Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
		}
	}
	// The attempt came with a cookie that was trusted when it began.
	end := here.begin(with(here.cookieOf("alice"), "192.0.2.1", "alice"))
	if err := here.guard.Forget(t.Context(), "alice"); err != nil {
		t.Fatal(err)
	}
	cookie := here.cookieOf("alice")
	end(http.StatusOK)
	if known() || trusted(cookie) {
		t.Errorf("an attempt with a cookie from before Forget: address known %v, cookie trusted %v", known(), trusted(cookie))
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
		var e trusts
		var sites []*site
		for range 3 {
			s := &site{t: t, clock: clock}
			guard, err := login.NewGuard(login.Config{
				Field: "username", Clock: clock.Now, Store: store, Secrets: [][]byte{secret}, OnEvent: e.event,
				CookieFor: cookieFor, KnownFor: knownFor, Attempts: core.PerMinute(core.MaxQuota),
				Resilience: resilient.Config{Timeout: time.Minute},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close() //nolint:errcheck // never fails without a shared store
			s.guard = guard
			sites = append(sites, s)
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
					n++
					s.serve(with(g.cookie, ip(n), g.account), http.StatusOK)
					trusted = e.last.Trust == "device"
				} else {
					st, err := s.guard.Status(context.Background(), g.account, g.address)
					if err != nil {
						r.Fatal(err)
					}
					trusted = st.KnownAddress
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
