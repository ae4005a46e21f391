package login_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/login"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type request struct {
	ctx    context.Context
	method string
	peer   string
	header http.Header
	query  string
	body   string
}

func (r *request) Context() context.Context { return r.ctx }

func (r *request) Method() string { return r.method }

func (r *request) Path() string { return "/login" }

func (r *request) EscapedPath() string     { return "/login" }
func (r *request) PathValue(string) string { return "" }

func (r *request) RawQuery() string { return r.query }

func (r *request) Route() string { return "/login" }

func (r *request) RemoteAddr() string { return r.peer + ":4711" }

func (r *request) HeaderValues(name string) []string { return r.header.Values(name) }

func (r *request) Query(string) (string, bool) { return "", false }

func (r *request) Value(any) any { return nil }

func (r *request) Cookie(name string) (string, bool) {
	for _, c := range (&http.Request{Header: r.header}).Cookies() {
		if c.Name == name {
			return c.Value, true
		}
	}
	return "", false
}

func (r *request) Body(n int) ([]byte, error) { return []byte(r.body[:min(n, len(r.body))]), nil }

func form(ip, user string) *request {
	return &request{
		ctx: context.Background(), method: http.MethodPost, peer: ip,
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		body:   url.Values{"username": {user}, "password": {"x"}}.Encode(),
	}
}

type site struct {
	t       *testing.T
	clock   *storetest.Clock
	guard   *login.Guard
	reached atomic.Int64 // attempts that have reached the handler
	cookies []string     // that an attacker has
}

var secret = []byte(strings.Repeat("s", 32))

func newSite(t *testing.T, c login.Config) *site {
	t.Helper()
	return newSiteAt(t, storetest.NewClock(time.Unix(1_764_000_000, 0)), c)
}

func newSiteAt(t *testing.T, clock *storetest.Clock, c login.Config) *site {
	t.Helper()
	s := &site{t: t, clock: clock}
	c.Clock = s.clock.Now
	if c.Field == "" && c.Sources == nil {
		c.Field = "username"
	}
	guard, err := login.NewGuard(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
	})
	s.guard = guard
	return s
}

func (s *site) serve(r *request, status int) int {
	d := s.guard.Check(r)
	if !d.Allowed {
		return s.guard.Deny(r, d).Status
	}
	s.reached.Add(1)
	if d.NeedsOutcome() {
		s.guard.Settle(r, d, core.Outcome{Status: status})
	}
	return status
}

func (s *site) wrong(ip, user string) int { return s.serve(form(ip, user), http.StatusUnauthorized) }

func (s *site) right(ip, user string) int { return s.serve(form(ip, user), http.StatusOK) }

func many(n int, f func(i int) int) string {
	counts := map[int]int{}
	for i := range n {
		counts[f(i)]++
	}
	return fmt.Sprint(counts)
}

func (s *site) want(got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("statuses %s, want %s", got, want)
	}
}

func ip(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, 1+i%250) }

func (s *site) withCookie(r *request, user string) *request {
	s.t.Helper()
	c, err := s.guard.DeviceCookie(context.Background(), user)
	if err != nil {
		s.t.Fatal(err)
	}
	r.header.Add("Cookie", c.Name+"="+c.Value)
	return r
}

func TestConcurrentGuessesGetNoMoreThanTheQuota(t *testing.T) {
	s := newSite(t, login.Config{Attempts: core.PerMinute(1000)})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { s.wrong("203.0.113.1", "alice") })
	}
	wg.Wait()
	if n := s.reached.Load(); n != 5 {
		t.Errorf("%d guesses reached the handler, want 5", n)
	}
}

// The table of docs/guides/login.md.
func TestWhichOutcomesCountAsFailures(t *testing.T) {
	const success, failure, neither = 0, 5, 4 // how many failures the address has for the account after four and one more
	only := func(statuses ...int) func(core.Outcome) bool {
		return func(o core.Outcome) bool { return slices.Contains(statuses, o.Status) }
	}
	a, basic := func() *request { return form("203.0.113.1", "alice") }, func() *request { return basicGet("Basic YWxpY2U6eA==") }
	both := func() *request { // the handler may read the form
		r := a()
		r.header.Set("Authorization", "Basic YWxpY2U6eA==")
		return r
	}
	withBasic := login.Config{Field: "username", Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET", "POST"}}
	ofForm := map[int]int{200: success, 204: success, 302: success, 400: failure, 401: failure, 403: failure, 404: failure, 407: failure, 422: failure, 429: failure, 101: neither, 500: neither, 503: neither}
	for name, row := range map[string]struct {
		c       login.Config
		request func() *request
		results map[int]int
	}{
		"a form":           {login.Config{}, a, ofForm},
		"Basic":            {withBasic, basic, map[int]int{200: success, 204: success, 302: success, 400: neither, 401: failure, 403: neither, 404: neither, 407: failure, 422: neither, 429: neither, 101: neither, 500: neither}},
		"a form and Basic": {withBasic, both, ofForm},
		"JSON, 422 only":   {login.Config{Failure: only(422)}, a, map[int]int{200: success, 302: success, 400: neither, 401: neither, 422: failure, 101: neither, 500: neither}},
		"Success only":     {login.Config{Success: only(204)}, a, map[int]int{200: failure, 204: success, 302: failure, 401: failure, 500: neither}},
		"both":             {login.Config{Success: only(200, 401), Failure: only(101, 302, 401, 500)}, a, map[int]int{200: success, 204: neither, 302: failure, 401: failure, 101: neither, 500: neither}},
	} {
		for status, want := range row.results {
			s := newSite(t, row.c)
			many(4, func(int) int {
				r := row.request()
				s.guard.Settle(r, s.guard.Check(r), core.Outcome{Panicked: true})
				return 0
			})
			s.serve(row.request(), status)
			st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1")
			if got := 5 - st.AddressAccount.Remaining; err != nil || got != int64(want) || st.KnownAddress != (want == success) {
				t.Errorf("%s: after a response with %d: %d failures, want %d; known %t, %v", name, status, got, want, st.KnownAddress, err)
			}
		}
	}
	// 5xx forgets nothing: four failures, a server error, one failure.
	s := newSite(t, login.Config{})
	for _, status := range []int{401, 401, 401, 401, 500, 401} {
		s.serve(form("203.0.113.1", "alice"), status)
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")

	// A panic is a failure.
	s = newSite(t, login.Config{})
	for range 5 {
		r := form("203.0.113.1", "alice")
		d := s.guard.Check(r)
		s.guard.Settle(r, d, core.Outcome{Status: 500, Panicked: true})
		s.guard.Settle(r, d, core.Outcome{Status: 200}) // does nothing
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
}

func TestARedirectToTheFormCountsAsAFailure(t *testing.T) {
	s := newSite(t, login.Config{Success: login.RedirectFails("/login")})
	location := "https://example.org/login?error=1#form"
	try := func() bool {
		r := form("203.0.113.1", "alice")
		d := s.guard.Check(r)
		if d.Allowed {
			s.guard.Settle(r, d, core.Outcome{Status: 302, Header: func(string) string { return location }})
		}
		return d.Allowed
	}
	for i := range 7 {
		if got := try(); got != (i < 5) {
			t.Errorf("attempt %d: allowed %v", i, got)
		}
	}
	s.clock.Advance(time.Hour)
	location = "/home"
	for range 10 {
		if !try() {
			t.Fatal("a redirect elsewhere counts")
		}
	}
}

func TestASuccessResetsTheFailuresOfItsAddressAndAccountOnly(t *testing.T) {
	s := newSite(t, login.Config{})
	for range 4 {
		s.wrong("203.0.113.1", "alice")
		s.wrong("203.0.113.2", "alice")
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	s.want(many(2, func(int) int { return s.wrong("203.0.113.2", "alice") }), "map[401:1 429:1]")

	got := many(60, func(i int) int {
		if i%20 == 19 {
			return s.right("203.0.113.9", "mallory")
		}
		return s.wrong("203.0.113.9", fmt.Sprint("victim", i))
	})
	s.want(got, "map[200:1 401:19 429:40]")
}

func TestWaitsDoubleUpToAnHour(t *testing.T) {
	s := newSite(t, login.Config{AccountFailures: core.PerHour(1000)})
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		s.want(many(5, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5]")
		for range 10 {
			if got := s.wrong("203.0.113.1", "alice"); got != http.StatusTooManyRequests {
				t.Fatalf("during the wait: %d", got)
			}
		}
		d := s.guard.Check(form("203.0.113.1", "alice"))
		if d.RetryAfter != want {
			t.Fatalf("wait of %v, want %v", d.RetryAfter, want)
		}
		s.clock.Advance(want)
	}
	s.clock.Advance(24 * time.Hour)
	many(5, func(int) int { return s.wrong("203.0.113.1", "alice") })
	if d := s.guard.Check(form("203.0.113.1", "alice")); d.RetryAfter != 30*time.Second {
		t.Errorf("a day later: %v", d.RetryAfter)
	}
}
