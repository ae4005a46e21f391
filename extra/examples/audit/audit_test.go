package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"go.uber.org/goleak"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
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

// Denied requests are listed, and what a client writes stays text.
func TestDeniedRequestsAreListed(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	const hostile = `<script>alert(1)</script>'); DROP TABLE denied; --`
	deny(t, s, hostile)
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

// Whichever field it comes through, hostile text stays text.
func TestHostileTextIsShownAsText(t *testing.T) {
	j, _ := open(t, 100)
	s := serve(t, j)
	const hostile = `"'><script>alert(1)</script>{{.Lost}}'); DROP TABLE denied; --` + "\xff"
	j.Write(Entry{
		At: time.Now(), Method: hostile, Route: hostile, Client: hostile, UserAgent: hostile,
		Limiter: hostile, Rule: hostile, Limit: hostile, Counter: hostile, Reason: hostile,
	})
	waitFor(t, func() bool { return count(t, j) == 1 })
	status, body := get(t, s, "/audit", "browser")
	const shown = `&#34;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{.Lost}}&#39;); DROP TABLE denied; --`
	// Nine fields of the entry, and two of its rule's total.
	if status != http.StatusOK || strings.Count(body, shown) != 11 || strings.Contains(body, "<script") || !utf8.ValidString(body) {
		t.Errorf("status %d, page:\n%s", status, body)
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
	long := strings.Repeat("x", 10_000)
	for _, most := range []int{5, len(long), len(long) + 1} {
		if part := cut(long, most); unsafe.StringData(part) == unsafe.StringData(long) {
			t.Errorf("cut to %d: the entry keeps the whole header in memory", most)
		}
	}
}

// A limiter that cannot decide denies too, and no limit is named then.
func TestDenialsOfNoLimitAreListed(t *testing.T) {
	j, _ := open(t, 100)
	limiter, err := core.New(core.Config{
		Name: "api",
		Rules: []core.Rule{{
			Name:   "ip",
			Key:    keyfuncs.Func(func(core.Request) (string, error) { return "", errors.New("the directory is down") }),
			Limits: []core.Limit{core.PerMinute(5)},
		}},
		Hooks: auditHooks{journal: j},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(httplimit.Middleware(limiter)(http.NotFoundHandler()))
	defer s.Close()
	if status, _ := get(t, s, "/", "x"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	waitFor(t, func() bool { return count(t, j) == 1 })
	entries, err := j.Newest(t.Context(), 1)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	if e := entries[0]; e.Limit != "" || e.Counter != "" || e.Reason != "failed" || e.Client != "127.0.0.1" {
		t.Errorf("%+v", e)
	}
}

// A wait that never ends is not shown as three hundred years.
func TestWaits(t *testing.T) {
	j, _ := open(t, 100)
	for wait, want := range map[time.Duration]string{core.Never: "never", 1500 * time.Millisecond: "1.5s"} {
		j.Write(Entry{At: time.Now(), Rule: want, RetryAfter: wait})
	}
	waitFor(t, func() bool { return count(t, j) == 2 })
	entries, err := j.Newest(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Wait() != e.Rule {
			t.Errorf("%v is shown as %q, want %q", e.RetryAfter, e.Wait(), e.Rule)
		}
	}
}
