package login_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestAGuardLogsThatItsStoreFails(t *testing.T) {
	var log bytes.Buffer
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	s := newSite(t, login.Config{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if got := s.serve(form("192.0.2.1", "alice"), http.StatusUnauthorized); got != http.StatusServiceUnavailable {
			t.Errorf("status %d", got)
		}
	}
	if strings.Count(log.String(), "the store failed") != 1 || !strings.Contains(log.String(), "limiter=login") ||
		strings.Contains(log.String(), "alice") || strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("logged: %s", &log)
	}
}

func TestAGuardLogsToTheDefaultLogger(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	s := newSite(t, login.Config{})
	s.want(many(100, func(i int) int { return s.right(ip(i), "alice") }), "map[200:100]")
	if !strings.Contains(log.String(), "no attempt has failed so far") {
		t.Errorf("logged: %s", &log)
	}
}

// A client of an API sends the right password each time.
func TestNothingIsLoggedIfNoRequestWithBasicAuthenticationFails(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET"}, Attempts: core.PerMinute(1000), Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.want(many(200, func(int) int { return s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK) }), "map[200:200]")
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// A handler that answers a wrong password with the form and 200 turns the guard off.
func TestAGuardLogsThatNoAttemptFails(t *testing.T) {
	for _, failed := range []int{-1, 0, 98, 99, 150} { // which attempt fails; -1: none
		var log bytes.Buffer
		s := newSite(t, login.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		lines := 0
		for i := range 200 {
			if i == failed {
				s.wrong(ip(i), "alice")
			} else {
				s.right(ip(i), "alice")
			}
			if n := strings.Count(log.String(), "no attempt has failed so far"); n > lines {
				if lines = n; i != 99 || !strings.Contains(log.String(), "attempts=100\n") {
					t.Errorf("logged after %d attempts", i+1)
				}
			}
		}
		if want := failed < 0 || failed > 99; want != (lines == 1) || lines > 1 {
			t.Errorf("attempt %d fails: %d lines\n%s", failed, lines, &log)
		}
	}
}
