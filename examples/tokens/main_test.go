package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/exampletest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs the program with a copy of its file, which the test may change.
func serve(t *testing.T) (base, folder string, log exampletest.Log) {
	t.Helper()
	folder = t.TempDir()
	text := core.Must(os.ReadFile("limits.yaml"))
	path := filepath.Join(folder, "limits.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	base, log = exampletest.Serve(t, func(ctx context.Context, log *slog.Logger, listening func(net.Addr)) error {
		return run(ctx, "127.0.0.1:0", path, time.Microsecond, log, listening)
	})
	return base, folder, log
}

func ask(t *testing.T, base, key, words string) (status int, body string) {
	t.Helper()
	r := core.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/answer?words="+words, nil))
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	resp := core.Must(http.DefaultClient.Do(r))
	defer resp.Body.Close() //nolint:errcheck // it was read
	return resp.StatusCode, string(core.Must(io.ReadAll(resp.Body)))
}

// A key is charged the words that were sent, and its quota is that of the file, also of one that
// has been changed.
func TestWordsAreCharged(t *testing.T) {
	base, folder, log := serve(t)
	want := func(key, words string, status int) {
		t.Helper()
		if got, body := ask(t, base, key, words); got != status {
			t.Errorf("%s asks for %s words: %d %.60q, want %d", key, words, got, body, status)
		}
	}
	want("", "1", http.StatusUnauthorized)
	for range 5 { // 150 words and 100 reserved: 250 of 300
		want("trial-11c2", "30", http.StatusOK)
	}
	for _, words := range []string{"many", "0", "-1", "5001"} {
		want("trial-11c2", words, http.StatusBadRequest) // costs nothing
	}
	want("trial-11c2", "100", http.StatusOK) // 250, and 100 more are too many
	want("trial-11c2", "1", http.StatusTooManyRequests)
	want("nobody", "1950", http.StatusOK) // the quota of a key without a plan
	want("nobody", "1", http.StatusTooManyRequests)
	want("gold-7f3a", "5000", http.StatusOK)
	want("gold-7f3a", "5000", http.StatusOK)
	want("gold-7f3a", "1", http.StatusTooManyRequests)
	for range 3 {
		want("staff-0001", "5000", http.StatusOK)
	}
	path := filepath.Join(folder, "limits.yaml")
	text := core.Must(os.ReadFile(path))
	changed := strings.NewReplacer("trial-11c2: 300", "trial-11c2: 400", "      staff-0001: unlimited\n", "").Replace(string(text))
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	log.Wait(t, "policy file in force")
	want("trial-11c2", "1", http.StatusOK)
	want("staff-0001", "1", http.StatusTooManyRequests) // 15000 words are counted, and its plan is gone
}
