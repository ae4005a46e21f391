package main

import (
	"context"
	"database/sql"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, keep int) (*Journal, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.db")
	j, err := OpenJournal(file, keep)
	if err != nil {
		t.Fatal(err)
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

// CASES 94: refused requests are listed, and what a client writes stays text.
func TestRefusedRequestsAreListed(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	const hostile = `<script>alert(1)</script>'); DROP TABLE refused; --`
	for i := range 8 {
		status, _ := get(t, s, "/api", hostile)
		if want := map[bool]int{true: 200, false: 429}[i < 5]; status != want {
			t.Fatalf("request %d: status %d, want %d", i, status, want)
		}
	}
	waitFor(t, func() bool { return count(t, j) == 3 })
	status, body := get(t, s, "/audit", "browser")
	if status != http.StatusOK || strings.Count(body, "&lt;script&gt;alert(1)") != 3 || strings.Contains(body, "<script>") {
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

// A database that is locked costs entries, and no request any time.
func TestALockedDatabaseHoldsUpNobody(t *testing.T) {
	j, file := open(t, 100_000)
	other, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // of no interest any more
	lock, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	s := serve(t, j)
	for range 8 {
		get(t, s, "/api", "x") // comes back, or the test would hang
	}
	const many = 3 * (queueLength + batchLength)
	for range many {
		j.Write(Entry{At: time.Now()})
	}
	if j.Lost() == 0 {
		t.Error("more are waiting than there is room for")
	}
	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return count(t, j)+j.Lost() == many+3 })
	if count(t, j) == 0 {
		t.Error("nothing was written after the lock")
	}
	_, body := get(t, s, "/audit", "browser")
	if !strings.Contains(body, "more could not be kept") {
		t.Error("the page does not say what was lost")
	}
}

func TestTheOldestAreDropped(t *testing.T) {
	j, _ := open(t, 10)
	for i := range 500 {
		j.Write(Entry{At: time.UnixMicro(int64(i)), Rule: "r"})
	}
	waitFor(t, func() bool {
		newest, err := j.Newest(t.Context(), 1)
		return err == nil && len(newest) == 1 && newest[0].At.UnixMicro() == 499
	})
	if n := count(t, j); n != 10 {
		t.Errorf("%d entries are kept, want 10", n)
	}
}

func TestCloseWritesWhatIsWaiting(t *testing.T) {
	j, file := open(t, 100_000)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 50 {
				j.Write(Entry{At: time.Now()})
			}
		})
	}
	wg.Wait()
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
	j.Write(Entry{}) // does nothing
	again, err := OpenJournal(file, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.Background()) //nolint:errcheck // of no interest any more
	if n := count(t, again); n+j.Lost() != 501 || n < 500-j.Lost() || n == 0 {
		t.Errorf("%d entries written, %d lost, of 501", n, j.Lost())
	}
}

// A deadline that has passed ends Close all the same.
func TestCloseEndsWithItsContext(t *testing.T) {
	j, file := open(t, 100)
	other, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // of no interest any more
	lock, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	j.Write(Entry{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Close(ctx); err == nil {
		t.Error("no error")
	}
	_, _ = lock.ExecContext(t.Context(), "ROLLBACK")
	<-j.done
}

func TestAClosedJournalShowsNoDetails(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, body := get(t, s, "/audit", "browser")
	if status != http.StatusServiceUnavailable || strings.Contains(body, "sql") {
		t.Errorf("status %d, %q", status, body)
	}
	if status, _ := get(t, s, "/api", "x"); status != http.StatusOK {
		t.Errorf("/api: %d", status)
	}
}

func TestWrongOptionsAreNamed(t *testing.T) {
	if _, err := OpenJournal(filepath.Join(t.TempDir(), "a.db"), 0); err == nil || !strings.Contains(err.Error(), "keep: 0") {
		t.Error(err)
	}
	if _, err := OpenJournal(filepath.Join(t.TempDir(), "no", "such", "folder.db"), 1); err == nil || !strings.Contains(err.Error(), "folder.db") {
		t.Error(err)
	}
}
