package login_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestAnAccountCanBeUnblockedAThousandTimes(t *testing.T) {
	s := newSite(t, login.Config{})
	unblocked := 0
	for err := error(nil); err == nil; unblocked++ {
		if err = s.guard.Unblock(t.Context(), "alice"); err != nil && (unblocked < 1000 || !strings.Contains(err.Error(), "full")) {
			t.Fatalf("the %d-th time: %v", unblocked, err)
		}
	}
	if err := s.guard.Unblock(t.Context(), "bob"); err != nil {
		t.Errorf("another account: %v", err)
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

func TestCheckWaitsForTheDelayOfAVerdict(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{-time.Second: 0, 0: 0, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, login.Config{SuspiciousAfter: 1, OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
				return login.Verdict{Delay: delay}
			}})
			s.wrong("203.0.113.1", "alice")
			begun := time.Now()
			if got := s.wrong("203.0.113.2", "alice"); got != http.StatusUnauthorized {
				t.Errorf("status %d", got)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("a delay of %v took %v, want %v", delay, took, want)
			}
		})
	}
}
