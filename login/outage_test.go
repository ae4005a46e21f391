package login_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/denycache"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

var quiet = slog.New(slog.DiscardHandler)

// The guard puts a shared store behind a resilient one, with its own clock and log, unless the
// store keeps deadlines and fails fast.
func TestTheGuardLimitsWhileTheStoreDoesNotAnswer(t *testing.T) {
	slow, late := remote, remote
	slow.KeepsDeadline, late.FailsFast = true, true
	closed := resilient.Config{OnFailure: resilient.FailClosed}
	for name, row := range map[string]struct {
		c    login.Config
		want string
	}{
		"has no other store":             {login.Config{}, "map[401:5 429:3]"},
		"counts in this process":         {login.Config{Store: broken()}, "map[401:5 429:3]"},
		"the same, cached":               {login.Config{Store: core.Must(denycache.New(broken(), denycache.Config{}))}, "map[401:5 429:3]"},
		"keeps deadlines only":           {login.Config{Store: says{broken(), slow}}, "map[401:5 429:3]"},
		"fails fast only":                {login.Config{Store: says{broken(), late}}, "map[401:5 429:3]"},
		"fails closed":                   {login.Config{Store: broken(), Resilience: closed}, "map[503:8]"},
		"fails closed, by the owner":     {login.Config{Store: core.Must(resilient.New(broken(), closed))}, "map[503:8]"},
		"two instances share the quotas": {login.Config{Store: broken(), Resilience: resilient.Config{Instances: 2, Log: quiet}}, "map[401:2 429:6]"},
		"its clock stands still":         {login.Config{Store: broken(), Resilience: resilient.Config{Clock: func() time.Time { return time.Unix(1e9, 0) }}}, "map[401:5 429:3]"},
	} {
		var log bytes.Buffer
		row.c.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := newSite(t, row.c)
		if got := s.wrongs(8, "203.0.113.1", "alice"); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
		s.clock.Advance(time.Hour)
		if row.c.Resilience.Clock != nil {
			row.want = "map[429:8]"
		}
		if got := s.wrongs(8, "203.0.113.1", "alice"); got != row.want {
			t.Errorf("%s, an hour later: %s, want %s", name, got, row.want)
		}
		if got := s.guard.Guarantees(); got.Shared != (row.c.Store != nil) || got.Shared && (got.OnFailure == core.FailClosed) != strings.HasPrefix(name, "fails closed") {
			t.Errorf("%s: %+v", name, got)
		}
		own := row.c.Resilience.Log != nil
		if says := strings.Contains(log.String(), errGone.Error()); name == "counts in this process" && !says || own && says {
			t.Errorf("%s: the guard's log: %s", name, &log)
		}
		s.must(s.guard.Close())
		if got := s.right("203.0.113.2", "bob"); got != 503 {
			t.Errorf("%s: a closed guard answers with %d", name, got)
		}
	}
}

func TestMethodsReturnTheErrorsOfTheStore(t *testing.T) {
	both := []string{"login", "login-memory"}
	for method, row := range map[string]struct {
		call func(g *login.Guard) error
		asks []string // the limiters
	}{
		"Status": {func(g *login.Guard) error {
			st, err := g.Status(t.Context(), "alice", "203.0.113.1")
			if st != (login.Status{}) {
				t.Errorf("%+v", st)
			}
			return err
		}, both},
		"DeviceCookie":   {func(g *login.Guard) error { _, err := g.DeviceCookie(t.Context(), "alice"); return err }, both[1:]},
		"Trust":          {func(g *login.Guard) error { return g.Trust(t.Context(), "alice", "203.0.113.1") }, both},
		"Forget":         {func(g *login.Guard) error { return g.Forget(t.Context(), "alice") }, both[1:]},
		"Unblock":        {func(g *login.Guard) error { return g.Unblock(t.Context(), "alice") }, both},
		"UnblockAddress": {func(g *login.Guard) error { return g.UnblockAddress(t.Context(), "203.0.113.1") }, both[:1]},
	} {
		for _, limiter := range row.asks {
			store, cut := private()
			s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Log: quiet})
			cut.only = limiter
			cut.gone.Store(true)
			if err := row.call(s.guard); !errors.Is(err, errGone) {
				t.Errorf("%s fails: %s: %v", limiter, method, err)
			}
		}
	}
}

// Another process may have called Forget meanwhile. The cookie was verified without the store.
func TestNoAddressIsKnownWhileTheStoreDoesNotAnswer(t *testing.T) {
	store := newShared()
	store.only = "login-memory" // failures are counted in the store all the while
	open := func() *site {
		return newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Log: quiet, Resilience: resilient.Config{Failures: 1000}})
	}
	s := open()
	cookie := s.cookieOf("alice")
	s.right("192.0.2.1", "alice")
	store.gone.Store(true)
	if got := s.trust(cookie, "alice"); got != "device" {
		t.Errorf("trusted by %q", got)
	}
	s.wantKnown("192.0.2.1", "alice", false)
	s.right("192.0.2.2", "alice")
	made := s.cookieOf("alice")
	for method, err := range map[string]error{
		"Forget": s.guard.Forget(t.Context(), "alice"), "Unblock": s.guard.Unblock(t.Context(), "alice"), "Trust": s.guard.Trust(t.Context(), "alice", "192.0.2.3"),
	} {
		if !errors.Is(err, core.ErrDegraded) {
			t.Errorf("%s has told nobody, and returns %v", method, err)
		}
	}
	store.gone.Store(false)
	s = open() // it asks at once
	for address, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": false, "192.0.2.3": false} {
		s.wantKnown(address, "alice", want)
	}
	for _, c := range []string{cookie, made} {
		if got := s.trust(c, "alice"); got != "device" {
			t.Errorf("trusted by %q when the store answers again", got)
		}
	}
}

// A Forget has no effect meanwhile, and the failures of the cookie are few.
func TestTheOwnerGetsInWithADeviceCookieWhileTheStoreDoesNotAnswer(t *testing.T) {
	store := newShared()
	s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Log: quiet})
	cookie, forgotten, other := s.cookieOf("alice"), s.cookieOf("carol"), s.cookieOf("bob")
	s.must(s.guard.Forget(t.Context(), "carol"))
	store.gone.Store(true)
	s.want(s.flood(120, "alice"), "map[401:100 429:20]")
	s.flood(120, "carol")
	for name, row := range map[string]struct {
		cookie, user string
		want         string
	}{
		"the owner": {cookie, "alice", "map[401:5 429:4]"}, "a cookie of another account": {other, "alice", "map[429:9]"},
		"a forged cookie": {cookie[:len(cookie)-5] + "AAAAA", "alice", "map[429:9]"}, "a forgotten cookie": {forgotten, "carol", "map[401:5 429:4]"},
	} {
		if got := many(9, func(i int) int { return s.serve(with(row.cookie, ip(500+i), row.user), http.StatusUnauthorized) }); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// There is no line in the log if the address could be remembered, or if package resilient has
// written one.
func TestAnAddressThatCannotBeRememberedIsLogged(t *testing.T) {
	var log bytes.Buffer
	counters, store := private()
	store.only = "login-memory"
	s := newSite(t, login.Config{Store: counters, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	if log.Len() > 0 {
		t.Errorf("a success is logged: %s", &log)
	}
	for answered := int64(1); answered < 3; answered++ { // trust is read, the old memory is forgotten, and then there is a new one
		log.Reset()
		store.left.Store(answered)
		store.gone.Store(true)
		s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
		if !strings.Contains(log.String(), `level=WARN msg="login: a client's address could not be remembered: it does not count as known for the account" error=`) ||
			!strings.Contains(log.String(), errGone.Error()) || strings.Contains(log.String(), "203.0.113.1") ||
			strings.Contains(log.String(), "limiter=login-memory ") != (answered == 1) { // one line a second
			t.Errorf("the store fails after %d operations: logged: %s", answered, &log)
		}
		store.left.Store(answered)
		if err := s.guard.Trust(t.Context(), "alice", "203.0.113.1"); !errors.Is(err, errGone) {
			t.Errorf("the store fails after %d operations: Trust: %v", answered, err)
		}
	}
	log.Reset()
	store = newShared()
	s = newSite(t, login.Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil)), Resilience: resilient.Config{Failures: 1}})
	end := s.begin(form("203.0.113.1", "alice"))
	store.gone.Store(true)
	s.right("203.0.113.2", "bob")
	if end(http.StatusOK); strings.Contains(log.String(), "remembered") {
		t.Errorf("logged: %s", &log)
	}
}
