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
