package login_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// basicGet is a GET request with Basic authentication and without a body.
func basicGet(authorization string) *request {
	return &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1", header: http.Header{"Authorization": {authorization}}}
}

func TestASourceThatSkipsFindsNoUsername(t *testing.T) {
	leaves := keyfuncs.Func(func(core.Request) (string, error) { return "mallory", core.SkipRule })
	s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{leaves, keyfuncs.OrSkip(login.BasicUser())}})
	s.want(many(7, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:2]")
	if st, err := s.guard.Status(t.Context(), "mallory", "203.0.113.1"); err != nil || st.Account.Remaining != 100 {
		t.Errorf("%+v, %v", st, err)
	}
	// It does not make a request without a body an attempt.
	s.want(many(30, func(int) int { return s.serve(basicGet(""), http.StatusOK) }), "map[200:30]")
}

// Finding it may cost a parse of the body.
func TestTheUsernameIsLookedForOncePerAttempt(t *testing.T) {
	looked := 0
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, Sources: []core.KeyFunc{keyfuncs.Func(func(core.Request) (string, error) {
		looked++
		return "alice", nil
	})}})
	s.want(many(7, func(int) int { return s.wrong("203.0.113.1", "") }), "map[401:5 429:2]")
	if looked != 7 {
		t.Errorf("7 attempts look for the username %d times", looked)
	}
}

// Of one letter, too.
func TestARequestThatNamesAUserIsAnAttemptWithoutABody(t *testing.T) {
	s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}})
	s.want(many(7, func(int) int { return s.serve(basicGet("Basic YTp4"), http.StatusUnauthorized) }), "map[401:5 429:2]")
}

// A client of an API sends several requests at once, each with its password, and most
// handlers are slow. They are judged one after another if need be, and nobody gets more
// guesses by that than 5, or 10 after a success.
func TestRequestsAtOnceWithBasicAuthentication(t *testing.T) {
	for name, row := range map[string]struct {
		n, warm int // warm: the status of a request before them; 0: none
		status  int
		takes   time.Duration
		want    string
	}{
		"right":                         {12, 0, 200, time.Second, "map[200:12]"},
		"right, after a success":        {12, 200, 200, time.Second, "map[200:12]"},
		"many, right":                   {300, 0, 200, 10 * time.Millisecond, "map[200:300]"},
		"right, after a failure":        {12, 401, 200, time.Second, "map[200:12]"},
		"not found":                     {12, 0, 404, time.Second, "map[404:12]"},
		"wrong":                         {30, 0, 401, time.Second, "map[401:5 429:25]"},
		"wrong, at once":                {30, 0, 401, 0, "map[401:5 429:25]"},
		"wrong, after a success":        {30, 200, 401, time.Second, "map[401:10 429:20]"},
		"wrong, after a failure":        {30, 401, 401, time.Second, "map[401:4 429:26]"},
		"streams":                       {12, 0, 200, time.Minute, "map[200:5 429:7]"},
		"streams, after a success":      {12, 200, 200, time.Minute, "map[200:10 429:2]"},
		"other failures, after success": {30, 200, 403, time.Second, "map[403:30]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET"}, Attempts: core.PerMinute(1000)})
				if row.warm != 0 {
					s.serve(basicGet("Basic YWxpY2U6eA=="), row.warm)
				}
				s.want(s.atOnce(row.n, row.status, row.takes), row.want)
				s.clock.Advance(time.Hour)
				s.want(s.atOnce(5, 401, time.Second), "map[401:5]")
			})
		})
	}
}

// atOnce are n requests with Basic authentication, which a handler judges at the same time.
func (s *site) atOnce(n, status int, takes time.Duration) string {
	got := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := basicGet("Basic YWxpY2U6eA==")
			d := s.guard.Check(r)
			if got[i] = http.StatusTooManyRequests; d.Allowed {
				s.reached.Add(1)
				time.Sleep(takes)
				s.guard.Settle(r, d, core.Outcome{Status: status})
				got[i] = status
			}
		})
	}
	wg.Wait()
	return many(n, func(i int) int { return got[i] })
}

// A client that has gone does not wait, and the requests of other accounts and forms do not wait.
func TestWhoDoesNotWaitInALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET", "POST"}})
		for range 5 {
			defer s.begin(basicGet("Basic YWxpY2U6eA=="))(http.StatusOK)
		}
		begun := time.Now()
		gone := basicGet("Basic YWxpY2U6eA==")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gone.ctx = ctx
		both := form("203.0.113.1", "alice")
		both.header.Set("Authorization", "Basic YWxpY2U6eA==")
		for name, row := range map[string]struct {
			r    *request
			want int
		}{"gone": {gone, 429}, "a form": {form("203.0.113.1", "alice"), 429}, "both": {both, 429}, "bob": {basicGet("Basic Ym9iOng="), 401}} {
			if got := s.serve(row.r, http.StatusUnauthorized); got != row.want || time.Since(begun) > 0 {
				t.Errorf("%s: status %d after %v, want %d", name, got, time.Since(begun), row.want)
			}
		}
	})
}

// A thousand requests wait. The limits decide on the next one at once.
func TestALineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET"}, Attempts: core.PerMinute(10_000)})
		for range 5 {
			defer s.begin(basicGet("Basic YWxpY2U6eA=="))(http.StatusUnauthorized)
		}
		var waiting sync.WaitGroup
		defer waiting.Wait()
		for range 1000 {
			waiting.Go(func() { s.guard.Check(basicGet("Basic YWxpY2U6eA==")) })
		}
		synctest.Wait()
		begun := time.Now()
		if d := s.guard.Check(basicGet("Basic YWxpY2U6eA==")); d.Allowed || time.Since(begun) > 0 {
			t.Errorf("%v after %v", d, time.Since(begun))
		}
	})
}

// unreadable is a request whose body cannot be read.
type unreadable struct{ *request }

func (unreadable) Body(int) ([]byte, error) { return nil, errGone }

// The handler may find a username in the body that no source reads.
func TestARequestWithABodyIsAnAttemptWhateverTheSourcesRead(t *testing.T) {
	s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}})
	one := form("203.0.113.1", "alice")
	one.method, one.body = http.MethodPut, "x"
	s.want(many(21, func(int) int { return s.serve(one, http.StatusOK) }), "map[400:20 429:1]")
	broken := form("203.0.113.2", "alice")
	broken.method = http.MethodPut
	for i := range 21 {
		d := s.guard.Check(unreadable{broken})
		if status := s.guard.Deny(broken, d).Status; d.Allowed || (status == http.StatusTooManyRequests) != (i == 20) {
			t.Errorf("attempt %d with a body that cannot be read: %v, status %d", i, d, status)
		}
	}
}

// Protection against CSRF has parsed the form, and a middleware has put the username into the
// request's context.
func TestASourceReadsTheContextBehindAMiddlewareThatHasParsedTheForm(t *testing.T) {
	type usernameKey struct{}
	guard := core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{keyfuncs.UserValue(usernameKey{})}}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	limited := httplimit.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	got := many(7, func(int) int {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("username=alice&password=x"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), usernameKey{}, r.PostFormValue("username"))))
		return w.Code
	})
	if got != "map[401:5 429:2]" {
		t.Errorf("statuses %s", got)
	}
}

// A key function that fails must not let an attempt through.
func TestAnAttemptWithoutAnAddressOrAnAccountIsDenied(t *testing.T) {
	fails := keyfuncs.Func(func(core.Request) (string, error) { return "", errGone })
	rejects := keyfuncs.Func(func(core.Request) (string, error) { return "", fmt.Errorf("%w: no address", core.ErrBadRequest) })
	for name, row := range map[string]struct {
		c      login.Config
		status int
	}{
		"ClientIP fails":        {login.Config{ClientIP: fails}, http.StatusServiceUnavailable},
		"ClientIP rejects":      {login.Config{ClientIP: rejects}, http.StatusBadRequest},
		"a source fails":        {login.Config{Sources: []core.KeyFunc{fails}}, http.StatusServiceUnavailable},
		"another source fails":  {login.Config{Field: "username", Sources: []core.KeyFunc{fails}}, http.StatusServiceUnavailable},
		"a source rejects":      {login.Config{Sources: []core.KeyFunc{rejects}}, http.StatusBadRequest},
		"unnamed, and it fails": {login.Config{Sources: []core.KeyFunc{fails}, AllowUnnamed: true}, http.StatusServiceUnavailable},
	} {
		s := newSite(t, row.c)
		if got := s.right("203.0.113.1", "alice"); got != row.status || s.reached.Load() != 0 {
			t.Errorf("%s: status %d, want %d", name, got, row.status)
		}
	}
	s := newSite(t, login.Config{ClientIP: fails})
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); !errors.Is(err, errGone) {
		t.Errorf("Status: %+v, %v", st, err)
	}
}

// Unnamed requests share one account, which is nobody's.
func TestARequestWithoutAUsernameMakesNoAddressKnown(t *testing.T) {
	s := newSite(t, login.Config{AllowUnnamed: true, AccountFailures: core.PerHour(3)})
	s.right("192.0.2.1", "")
	many(3, func(i int) int { return s.wrong(ip(i), "") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "") }), "map[429:1]")
}

// Otherwise every client without an address would be known after one of them has logged in.
func TestAnEmptyAddressDoesNotBecomeKnown(t *testing.T) {
	s := newSite(t, login.Config{ClientIP: keyfuncs.Header("X-Client"), AccountFailures: core.PerHour(3), Attempts: core.PerMinute(1000)})
	from := func(client string) *request {
		r := form("203.0.113.1", "alice")
		if client != "" {
			r.header.Set("X-Client", client)
		}
		return r
	}
	s.serve(from(""), http.StatusOK)
	s.serve(from("at home"), http.StatusOK)
	for i := range 3 {
		s.serve(from(ip(i)), http.StatusUnauthorized)
	}
	if empty, home := s.serve(from(""), http.StatusOK), s.serve(from("at home"), http.StatusOK); empty != http.StatusTooManyRequests || home != http.StatusOK {
		t.Errorf("no address: %d, a known address: %d", empty, home)
	}
}
