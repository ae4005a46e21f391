package login_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// private returns a store that the guard puts nothing around, so that its errors reach the
// guard, and the same store to cut it off.
func private(t *testing.T) (core.Store, *shared) {
	t.Helper()
	store := newShared(t, core.MemoryConfig{})
	g := remote
	g.Shared = false
	return says{store, g}, store
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

func TestStatusAndUnblockReturnTheErrorOfEachCounter(t *testing.T) {
	for _, limiter := range []string{"login", "login-memory"} {
		store, cut := private(t)
		s := newSite(t, login.Config{Store: store, Log: slog.New(slog.DiscardHandler)})
		if err := s.guard.Unblock(t.Context(), "alice"); err != nil {
			t.Fatal(err)
		}
		cut.only = limiter
		cut.gone.Store(true)
		if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); !errors.Is(err, errGone) || st != (login.Status{}) {
			t.Errorf("%s fails: Status: %+v, %v", limiter, st, err)
		}
		err := s.guard.Unblock(t.Context(), "alice")
		if !errors.Is(err, errGone) {
			t.Errorf("%s fails: Unblock: %v", limiter, err)
		}
	}
}

// What the guard does not ask again for a second is an answer of the store.
func TestAKnownAddressIsKnownAtOnceAfterAnOutage(t *testing.T) {
	{
		store, cut := private(t)
		s := newSite(t, login.Config{Store: store, AccountFailures: core.Limit{Quota: 3, Window: time.Hour, Algorithm: core.FixedWindow}, Log: slog.New(slog.DiscardHandler)})
		s.right("192.0.2.1", "alice")
		many(3, func(i int) int { return s.wrong(ip(i), "alice") })
		cut.only = "login-memory"
		cut.gone.Store(true)
		s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[503:1]")
		cut.gone.Store(false)
		s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
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

// The application has denied the attempt, whoever is there to read that.
func TestADenialIsNoFailureEvenIfTheClientLeavesDuringTheDelay(t *testing.T) {
	var events []login.Event
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(3), SuspiciousAfter: 1, OnEvent: func(e login.Event) { events = append(events, e) },
		OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
			return login.Verdict{Delay: time.Hour, Deny: &core.Denial{Status: http.StatusForbidden}}
		},
	})
	s.wrong(ip(1), "alice")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := form(ip(2), "alice")
	r.ctx = ctx
	if got := s.serve(r, http.StatusOK); got != http.StatusForbidden {
		t.Errorf("status %d", got)
	}
	if len(events) != 3 || events[1].Kind != login.EventSuspected || events[2].Kind != login.EventDenied || events[2].Rule != "" || events[2].RetryAfter != 0 {
		t.Errorf("events %+v", events)
	}
	if st, err := s.guard.Status(t.Context(), "alice", ip(2)); err != nil || st.Account.Remaining != 2 || st.AddressAccount.Remaining != 5 {
		t.Errorf("%+v, %v", st, err)
	}
}
