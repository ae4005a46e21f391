package main

import (
	"context"
	"errors"
	"io"
	"net"
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
	return j, file
}

func closed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
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

func get(t *testing.T, client *http.Client, url, agent string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	resp, err := client.Do(req)
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

// deny makes eight requests and checks that each is answered as without an audit log: five are
// allowed, three denied.
func deny(t *testing.T, client *http.Client, url, agent string) {
	t.Helper()
	for i := range 8 {
		status, _ := get(t, client, url+"/api", agent)
		if want := map[bool]int{true: 200, false: 429}[i < 5]; status != want {
			t.Fatalf("request %d: status %d, want %d", i, status, want)
		}
	}
}

func newest(t *testing.T, j *Journal) []Entry {
	t.Helper()
	entries, err := j.Newest(t.Context(), 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// waitFor waits for what the writer does.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("nothing happens")
		}
	}
}

// Denied requests are listed, the newest only. Hostile text stays text in each field, and is cut.
func TestDeniedRequestsAreListed(t *testing.T) {
	j, _ := open(t, 4)
	defer closed(t, j)
	s := serve(t, j)
	const hostile = `"'><script>alert(1)</script>{{.Lost}}'); DROP TABLE denied; --`
	const shown = `&#34;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{.Lost}}&#39;); DROP TABLE denied; --`
	j.Write(Entry{Method: "dropped"})
	deny(t, s.Client(), s.URL, hostile+strings.Repeat("x", 10_000)+"\xff")
	const text = hostile + "\xff"
	j.Write(Entry{At: time.Now(), Method: text, Route: text, Client: text, UserAgent: text, Limiter: text, Rule: text, Limit: text, Counter: text, Reason: text})
	waitFor(t, func() bool { e := newest(t, j); return len(e) == 4 && e[3].Method == http.MethodGet })
	status, body := get(t, s.Client(), s.URL+"/audit", "browser")
	// Three user agents, and nine fields of the entry.
	if status != http.StatusOK || strings.Count(body, shown) != 12 || strings.Contains(body, "<script") || !utf8.ValidString(body) || len(body) > 10_000 {
		t.Errorf("status %d, page:\n%s", status, body)
	}
	for _, want := range []string{"GET /api", "127.0.0.1", "api/ip", "5 per 1m", "over limit", "fg1:api:ip:"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Nobody takes from the queue here, so that one wait would be for ever.
func TestAFullQueueHoldsUpNobody(t *testing.T) {
	j := &Journal{queue: make(chan Entry, 2)}
	s := serve(t, j)
	deny(t, s.Client(), s.URL, "x")
	if len(j.queue) != 2 || j.Lost() != 1 {
		t.Errorf("%d wait and %d are lost, want 2 and 1", len(j.queue), j.Lost())
	}
}

// A database that is broken costs entries while it is, and then no more.
func TestABrokenDatabaseFailsNobody(t *testing.T) {
	j, _ := open(t, 100)
	defer closed(t, j)
	s := serve(t, j)
	if _, err := j.db.ExecContext(t.Context(), "DROP TABLE denied"); err != nil {
		t.Fatal(err)
	}
	deny(t, s.Client(), s.URL, "x")
	waitFor(t, func() bool { return j.Lost() == 3 })
	if status, body := get(t, s.Client(), s.URL+"/audit", "browser"); status != http.StatusServiceUnavailable || strings.Contains(body, "table") {
		t.Errorf("status %d, %q", status, body)
	}
	if _, err := j.db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	get(t, s.Client(), s.URL+"/api", "x")
	waitFor(t, func() bool { return len(newest(t, j)) == 1 })
	if _, body := get(t, s.Client(), s.URL+"/audit", "browser"); j.Lost() != 3 || !strings.Contains(body, "3 more are lost") {
		t.Errorf("%d are lost, want 3, and the page says so:\n%s", j.Lost(), body)
	}
}

// What is denied just before the program is told to stop is in the file, as is what waits.
func TestShutdownWritesWhatIsWaiting(t *testing.T) {
	j, file := open(t, 10_000)
	for range 500 {
		j.Write(Entry{})
	}
	closed(t, j)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, listener, file, 10_000) }()
	deny(t, http.DefaultClient, "http://"+listener.Addr().String(), "x")
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if j, err = OpenJournal(file, 1); err != nil {
		t.Fatal(err)
	}
	defer closed(t, j)
	if n := len(newest(t, j)); n != 503 {
		t.Errorf("%d entries are in the file, want 503", n)
	}
}

func TestNothingIsServedWithoutADatabase(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), listener, filepath.Join(t.TempDir(), "no", "such", "folder.db"), 1); err == nil || !strings.Contains(err.Error(), "folder.db") {
		t.Error(err)
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}
