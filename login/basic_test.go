package login_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// A handler of Basic authentication may serve methods that Config.Methods does not name.
func TestBasicAuthenticationIsLimitedWithEveryMethod(t *testing.T) {
	for _, methods := range [][]string{nil, {"GET"}} {
		for _, method := range []string{"GET", "HEAD", "POST", "PROPFIND"} {
			s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: methods})
			r := basicGet("Basic YWxpY2U6eA==")
			r.method = method
			s.want(many(8, func(int) int { return s.serve(r, http.StatusUnauthorized) }), "map[401:5 429:3]")
		}
	}
}

// A client of an API sends several requests at once, each with its password, and most
// handlers are slow. At most 5 are judged at a time, and nobody gets more guesses by that.
func TestRequestsAtOnceWithBasicAuthentication(t *testing.T) {
	for name, row := range map[string]struct {
		n, warm int // warm: the status of a request before them; 0: none
		status  int
		takes   time.Duration
		want    string
	}{
		"right":                         {12, 0, 200, time.Second, "map[200:12]"},
		"many, right":                   {300, 0, 200, 10 * time.Millisecond, "map[200:300]"},
		"right, after a failure":        {12, 401, 200, time.Second, "map[200:4 429:8]"},
		"not found":                     {12, 0, 404, time.Second, "map[404:12]"},
		"wrong":                         {30, 0, 401, time.Second, "map[401:5 429:25]"},
		"wrong, at once":                {30, 0, 401, 0, "map[401:5 429:25]"},
		"wrong, after a failure":        {30, 401, 401, time.Second, "map[401:4 429:26]"},
		"slow":                          {10, 0, 200, 9 * time.Second, "map[200:10]"},
		"streams":                       {12, 0, 200, 11 * time.Second, "map[200:5 429:7]"},
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
				begun := time.Now()
				s.want(s.atOnce(5, 401, time.Second), "map[401:5]")
				if took := time.Since(begun); took > 5*time.Second { // the denied have left the line
					t.Errorf("5 more took %v", took)
				}
			})
		})
	}
}

// A client that has gone does not wait, and the requests of other accounts,
// other addresses and forms do not wait. If the quota is 0, nobody does. A burst is as a quota.
func TestWhoDoesNotWaitInALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Failures: core.Limit{Window: time.Hour}})
		begun := time.Now()
		if got := none.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK); got != 429 || time.Since(begun) > 0 {
			t.Errorf("a quota of 0: status %d after %v", got, time.Since(begun))
		}
		few := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Failures: core.Limit{Quota: 9, Window: time.Hour, Algorithm: core.TokenBucket, Burst: 2}})
		few.want(few.atOnce(6, http.StatusOK, time.Second), "map[200:6]")
		begun = time.Now()
		s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{login.BasicUser()}, Methods: []string{"GET", "POST"}})
		for range 5 {
			defer s.begin(basicGet("Basic YWxpY2U6eA=="))(http.StatusOK)
		}
		gone := basicGet("Basic YWxpY2U6eA==")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		gone.ctx = ctx
		elsewhere := basicGet("Basic YWxpY2U6eA==")
		elsewhere.peer = "192.0.2.9"
		both := form("203.0.113.1", "alice")
		both.header.Set("Authorization", "Basic YWxpY2U6eA==")
		for name, row := range map[string]struct {
			r    *request
			want int
		}{"gone": {gone, 429}, "a form": {form("203.0.113.1", "alice"), 429}, "both": {both, 429}, "bob": {basicGet("Basic Ym9iOng="), 401}, "another address": {elsewhere, 401}} {
			if got := s.serve(row.r, http.StatusUnauthorized); got != row.want || time.Since(begun) > 0 {
				t.Errorf("%s: status %d after %v, want %d", name, got, time.Since(begun), row.want)
			}
		}
	})
}

// A panic in Success or Failure does not make later requests wait.
func TestAPanicReleasesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Failure: func(core.Outcome) bool { panic("a mistake of the application") }})
		for range 5 {
			func() {
				defer func() { _ = recover() }()
				s.begin(basicGet("Basic YWxpY2U6eA=="))(http.StatusOK)
			}()
		}
		begun := time.Now()
		if got := s.serve(basicGet("Basic YWxpY2U6eA=="), http.StatusOK); got != 429 || time.Since(begun) > 0 {
			t.Errorf("status %d after %v, want 429 at once", got, time.Since(begun))
		}
	})
}
