package policy_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/policy"
)

// site is an application under a policy file, on a clock that the test moves.
type site struct {
	t       *testing.T
	set     *policy.Set
	now     time.Time
	handler http.Handler
	reached atomic.Int64 // requests that the handler has seen
}

func newSite(t *testing.T, text string, opts ...policy.Option) *site {
	t.Helper()
	s := &site{t: t, now: time.Unix(1_800_000_000, 0)}
	store, err := core.NewMemory(core.MemoryConfig{Clock: func() time.Time { return s.now }})
	must(t, err)
	if s.set, err = policy.Parse("file.yaml", []byte(text), append([]policy.Option{policy.WithStore(store)}, opts...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.set.Close(); err != nil {
			t.Error(err)
		}
		must(t, store.Close())
	})
	s.mount(s.set)
	return s
}

func (s *site) mount(c core.Checker) {
	s.handler = httplimit.Middleware(c)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.reached.Add(1) }))
}

// option changes a request before it is sent.
type option func(r *http.Request)

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func from(address string) option {
	return func(r *http.Request) { r.RemoteAddr = address + ":1234" }
}

func body(contentType, text string) option {
	return func(r *http.Request) {
		*r = *httptest.NewRequest(r.Method, r.URL.String(), strings.NewReader(text))
		r.Header.Set("Content-Type", contentType)
	}
}

func (s *site) send(method, target string, opts ...option) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for _, o := range opts {
		o(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

// expect sends a request and says what status it is to get.
func (s *site) expect(status int, method, target string, opts ...option) *httptest.ResponseRecorder {
	s.t.Helper()
	w := s.send(method, target, opts...)
	if w.Code != status {
		s.t.Errorf("%s %s: %d, want %d", method, target, w.Code, status)
	}
	return w
}

func (s *site) pass(d time.Duration) { s.now = s.now.Add(d) }

func (s *site) replace(text string) {
	s.t.Helper()
	if err := s.set.Replace([]byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// used returns how many requests without a key a policy has counted.
func (s *site) used(policy string, quota int64) int64 {
	s.t.Helper()
	d, err := s.set.Limiter().Peek(s.t.Context(), 1, core.Hit{Rule: policy})
	if err != nil {
		s.t.Fatal(err)
	}
	return quota - d.Remaining
}

// get returns a request from 192.0.2.1.
func get(target string, opts ...floodgatetest.RequestOption) core.Request {
	return floodgatetest.NewRequest(http.MethodGet, target, opts...)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFolder returns a new temporary folder, for examples.
func newFolder() string { return core.Must(os.MkdirTemp("", "floodgate")) }
