package login_test

import (
	"bytes"
	"errors"
	"fmt"
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

func TestTheGuardLimitsWhileTheStoreDoesNotAnswer(t *testing.T) {
	s := newSite(t, login.Config{Store: broken{}})
	s.want(many(8, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:3]")
	s.want(many(1, func(int) int { return s.right("203.0.113.2", "alice") }), "map[200:1]")
	// No address is known meanwhile: another process may have forgotten it.
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("203.0.113.2", "alice") }), "map[429:1]")
	s.want(many(1, func(int) int { return s.right("203.0.113.3", "alice") }), "map[429:1]")
	s = newSite(t, login.Config{Store: broken{}, Resilience: resilient.Config{OnFailure: resilient.FailClosed}})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
}

// A store of this process has nothing to fall back on. No limit has denied the attempts, so there is no event.
func TestAPrivateStoreThatFailsDeniesAttempts(t *testing.T) {
	store, cut := private(t)
	var events []login.Event
	s := newSite(t, login.Config{Store: store, Log: slog.New(slog.DiscardHandler), OnEvent: func(e login.Event) { events = append(events, e) }})
	cut.gone.Store(true)
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
	cut.gone.Store(false)
	s.want(many(1, func(int) int { return s.wrong("203.0.113.1", "") }), "map[400:1]")
	if len(events) > 0 {
		t.Errorf("events of attempts that are answered with 503 and 400: %+v", events)
	}
	s.want(many(1, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:1]")
}

func TestMethodsReturnTheErrorOfEachCounter(t *testing.T) {
	for _, limiter := range []string{"login", "login-memory"} {
		store, cut := private(t)
		s := newSite(t, login.Config{Store: store, Secrets: [][]byte{secret}, Log: slog.New(slog.DiscardHandler)})
		cut.only = limiter
		cut.gone.Store(true)
		st, statusErr := s.guard.Status(t.Context(), "alice", "203.0.113.1")
		cookie, cookieErr := s.guard.DeviceCookie(t.Context(), "alice")
		for method, err := range map[string]error{
			"Status": statusErr, "Unblock": s.guard.Unblock(t.Context(), "alice"), "Trust": s.guard.Trust(t.Context(), "alice", "203.0.113.1"),
			"DeviceCookie": cookieErr, "Forget": s.guard.Forget(t.Context(), "alice"), "UnblockAddress": s.guard.UnblockAddress(t.Context(), "203.0.113.1"),
		} {
			asks := map[string]bool{"DeviceCookie": limiter == "login-memory", "Forget": limiter == "login-memory", "UnblockAddress": limiter == "login"}
			if want, sometimes := asks[method]; errors.Is(err, errGone) != (want || !sometimes) {
				t.Errorf("%s fails: %s: %v", limiter, method, err)
			}
		}
		if st != (login.Status{}) || cookieErr != nil && cookie != nil {
			t.Errorf("%s fails: %+v, %v", limiter, st, cookie)
		}
	}
}

// It could be that of a password that was changed meanwhile.
func TestALoginWithoutTheSharedCountersMakesNoAddressKnown(t *testing.T) {
	store := newShared(t, core.MemoryConfig{})
	s := newSite(t, login.Config{Store: store, Log: slog.New(slog.DiscardHandler), Resilience: resilient.Config{Failures: 1000}})
	store.only = "login-memory"
	store.gone.Store(true)
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	store.gone.Store(false)
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || st.KnownAddress {
		t.Errorf("%+v, %v", st, err)
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.KnownAddress {
		t.Errorf("after a login that is known: %+v, %v", st, err)
	}
}

// The guard puts a resilient store around a shared one. Its Clock and Log are those of the
// guard, unless Resilience has others.
func TestResilienceUsesTheGuardsClockAndLog(t *testing.T) {
	var log, other bytes.Buffer
	logger := func(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
	s := newSite(t, login.Config{
		Store: broken{}, Log: logger(&log),
		Failures: core.Limit{Quota: 2, Window: 15 * time.Minute, Algorithm: core.FixedWindow},
	})
	s.want(many(4, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:2 429:2]")
	s.clock.Advance(15 * time.Minute)
	s.want(many(4, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:2 429:2]")
	if !strings.Contains(log.String(), errGone.Error()) {
		t.Errorf("the guard's log does not say why the store fails: %s", &log)
	}

	log.Reset()
	s = newSite(t, login.Config{Store: broken{}, Log: logger(&log), Resilience: resilient.Config{Log: logger(&other)}})
	s.wrong("203.0.113.1", "alice")
	if !strings.Contains(other.String(), errGone.Error()) || log.Len() > 0 {
		t.Errorf("Resilience.Log has %q, Log has %q", &other, &log)
	}
	s.right("203.0.113.1", "alice")
	if strings.Contains(log.String(), "remembered") { // it follows from what has been logged
		t.Errorf("Log has %q", &log)
	}
}

// In an outage each of several instances allows its part of the failures, once. An
// account that nobody has unblocked is not pardoned.
func TestAnOutagePardonsNobody(t *testing.T) {
	for _, instances := range []int{1, 2, 3} {
		s := newSite(t, login.Config{
			Store: broken{}, Log: slog.New(slog.DiscardHandler), Resilience: resilient.Config{Instances: instances},
			Failures: core.Limit{Quota: 6, Window: 15 * time.Minute, Algorithm: core.FixedWindow},
		})
		want := 6 / instances
		s.want(many(12, func(int) int { return s.wrong("203.0.113.1", "alice") }), fmt.Sprintf("map[401:%d 429:%d]", want, 12-want))
		if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); err != nil || !st.AddressAccount.Denied || st.RetryAfter <= 0 {
			t.Errorf("%d instances: %+v, %v", instances, st, err)
		}
	}
}

// A store that keeps a deadline and fails fast is not put behind another one, so that it
// does what its owner has configured for an outage.
func TestASharedStoreIsPutBehindAResilientOne(t *testing.T) {
	s := newSite(t, login.Config{Store: core.Must(denycache.New(core.Must(resilient.New(broken{}, resilient.Config{OnFailure: resilient.FailClosed})), denycache.Config{}))})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
	slow, late := remote, remote
	slow.KeepsDeadline, late.FailsFast = true, true
	for _, almost := range []core.Guarantees{slow, late} {
		s = newSite(t, login.Config{Store: says{broken{}, almost}})
		s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	}
	s = newSite(t, login.Config{Store: core.Must(denycache.New(broken{}, denycache.Config{}))})
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
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

// There is no line in the log if the address could be remembered.
func TestAnAddressThatCannotBeRememberedIsLogged(t *testing.T) {
	var log bytes.Buffer
	counters, store := private(t)
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
		if !strings.Contains(log.String(), "could not be remembered") || strings.Contains(log.String(), "203.0.113.1") {
			t.Errorf("the store fails after %d operations: logged: %s", answered, &log)
		}
	}
}
