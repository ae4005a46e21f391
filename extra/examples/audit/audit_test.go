package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, keep int) (*Journal, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a?mode=memory#%41 ä.db") // a name is a name, whatever it means in a URI
	j, err := OpenJournal(file, keep)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	return j, file
}

func serve(t *testing.T, j *Journal) *httptest.Server {
	t.Helper()
	app, err := routes(j)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(app)
	s.Client().Timeout = 20 * time.Second // a request that is held up fails its test
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *httptest.Server, path, agent string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// deny asks eight times, and sees each answered as if there were no audit log:
// five let through, three denied.
func deny(t *testing.T, s *httptest.Server, agent string) {
	t.Helper()
	for i := range 8 {
		status, _ := get(t, s, "/api", agent)
		if want := map[bool]int{true: 200, false: 429}[i < 5]; status != want {
			t.Fatalf("request %d: status %d, want %d", i, status, want)
		}
	}
}

// waitFor waits for what the writer does.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("nothing happens")
		}
		<-time.After(time.Millisecond)
	}
}

func count(t *testing.T, j *Journal) int64 {
	t.Helper()
	totals, err := j.Totals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, total := range totals {
		n += total.Count
	}
	return n
}

// Denied requests are listed, and hostile text stays text, whichever field it comes through.
func TestDeniedRequestsAreListed(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	const hostile = `"'><script>alert(1)</script>{{.Lost}}'); DROP TABLE denied; --`
	const shown = `&#34;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{.Lost}}&#39;); DROP TABLE denied; --`
	deny(t, s, hostile)
	const text = hostile + "\xff"
	j.Write(Entry{At: time.Now(), Method: text, Route: text, Client: text, UserAgent: text, Limiter: text, Rule: text, Limit: text, Counter: text, Reason: text})
	waitFor(t, func() bool { return count(t, j) == 4 })
	status, body := get(t, s, "/audit", "browser")
	// Three user agents, nine fields of the entry, and two of its rule's total.
	if status != http.StatusOK || strings.Count(body, shown) != 14 || strings.Contains(body, "<script") || !utf8.ValidString(body) {
		t.Errorf("status %d, page:\n%s", status, body)
	}
	for _, want := range []string{"GET /api", "127.0.0.1", "api/ip", "5 per 1m", "over limit", "fg1:api:ip:", "<td>3</td>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestWhatAClientWritesIsBounded(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	for range 6 {
		get(t, s, "/api", strings.Repeat("x", 10_000)+"\xff")
	}
	waitFor(t, func() bool { return count(t, j) == 1 })
	entries, err := j.Newest(t.Context(), 10)
	if err != nil || len(entries) != 1 || len(entries[0].UserAgent) != maxUserAgent {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
