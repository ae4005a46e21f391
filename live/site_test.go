package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a limiter and its page.
type site struct {
	t       *testing.T
	page    *live.Page
	limiter *core.Limiter
	log     *bytes.Buffer
}

var userRule = core.Rule{Name: "user", Limits: []core.Limit{core.PerMinute(3)}}

func newSite(t *testing.T, c live.Config, l core.Config) *site {
	t.Helper()
	s := &site{t: t, log: new(bytes.Buffer)}
	c.Log = slog.New(slog.NewTextHandler(s.log, nil))
	c.Instance = "one"
	s.page = core.Must(live.New(c))
	t.Cleanup(func() { _ = s.page.Close() })
	l.Name, l.Observer = "api", s.page
	if l.Rules == nil {
		l.Rules = []core.Rule{userRule}
	}
	s.limiter = core.Must(core.New(l))
	s.page.Manage(s.limiter)
	return s
}

func (s *site) take(n int, keys ...string) {
	for range n {
		for _, k := range keys {
			s.limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: k})
		}
	}
}

// lines is the log without times.
func (s *site) lines() string {
	return regexp.MustCompile(`time=\S+ `).ReplaceAllString(s.log.String(), "")
}

// allows reports whether a request of the key is allowed.
func (s *site) allows(key string) bool {
	return s.limiter.Allow(context.Background(), core.Hit{Rule: "user", Key: key})
}

// call sends a request of a client that has hung up already.
func call(page http.Handler, method, query, body string, headers ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequestWithContext(ctx, method, "/any/prefix"+query, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w
}

type answered struct {
	status int
	Error  string
	Note   string
	Limits []struct {
		Limit               string
		Capacity, Remaining int64
		Exceeded            bool
		RetryMS             int64
	}
}

// answer is the page's answer to a request.
func answer(t *testing.T, w *httptest.ResponseRecorder) answered {
	t.Helper()
	a := answered{status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// post sends an order as the page does.
func (s *site) post(order string, headers ...string) answered {
	s.t.Helper()
	return answer(s.t, call(s.page, http.MethodPost, "", order, headers...))
}

func mayChange(who string) func(*http.Request, live.Action) (string, error) {
	return func(*http.Request, live.Action) (string, error) { return who, nil }
}

type shown struct {
	Instance string
	ReadOnly bool
	Logins   []string
	Limiters []shownLimiter
}

type shownLimiter struct {
	Name            string
	Managed, Shared bool
	Store           struct{ Asked, Failed, Degraded, Errors, P99MS float64 }
	Rules           []struct {
		Name                    string
		Limits                  []string
		Allowed, Denied, DryRun []int
	}
	Denied, Near []struct {
		ID, Rule, Label string
		Count, Over     int
		Ago             int
		Used, Capacity  int
		Cut             bool
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// viewer is a browser that follows a page without a network.
type viewer struct {
	header http.Header
	leave  context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	deadline time.Time
	slow     time.Duration // how long the next event takes to be sent
	broken   bool          // no event can be sent
	got      []shown
}

func (v *viewer) Header() http.Header { return v.header }
func (v *viewer) WriteHeader(int)     {}

func (v *viewer) Flush() {
	if !v.deadline.After(time.Now()) {
		panic("a browser that reads nothing would hold this for ever")
	}
}

func (v *viewer) SetWriteDeadline(t time.Time) error {
	v.deadline = t
	return nil
}

func (v *viewer) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	time.Sleep(v.slow)
	v.slow = 0
	if v.broken || time.Now().After(v.deadline) {
		return 0, errors.New("the browser reads nothing")
	}
	var s shown
	if err := json.Unmarshal(text[len("data: "):], &s); err != nil {
		return 0, err
	}
	v.got = append(v.got, s)
	return len(text), nil
}

func (v *viewer) set(slow time.Duration, broken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.slow, v.broken = slow, broken
}

// all returns the events until now.
func (v *viewer) all() []shown {
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got
}

// api is what the last event says of the first limiter.
func (v *viewer) api() shownLimiter {
	all := v.all()
	return all[len(all)-1].Limiters[0]
}

func (v *viewer) gone() bool {
	synctest.Wait()
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// follow opens the page in a browser, in a bubble of synctest.
func follow(t *testing.T, page *live.Page) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &viewer{header: http.Header{}, ended: make(chan struct{}), leave: cancel}
	go func() {
		defer close(v.ended)
		page.ServeHTTP(v, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?events", nil))
	}()
	synctest.Wait()
	return v
}

// see returns what the page shows now.
func (s *site) see() shown {
	s.t.Helper()
	var v shown
	text, ok := strings.CutPrefix(call(s.page, http.MethodGet, "?events", "").Body.String(), "data: ")
	if err := json.Unmarshal([]byte(text), &v); err != nil || !ok {
		s.t.Fatal(text, err)
	}
	return v
}
