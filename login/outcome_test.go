package login_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

// The table of docs/guides/login.md. A panic is a failure whatever the status is: a handler may
// panic after it has begun the response.
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
	ofForm := map[int]int{200: success, 302: success, 400: failure, 401: failure, 422: failure, 429: failure, 101: neither, 500: neither, 503: neither}
	for name, row := range map[string]struct {
		c       login.Config
		request func() *request
		results map[int]int
	}{
		"a form":           {login.Config{}, a, ofForm},
		"Basic":            {withBasic, basic, map[int]int{200: success, 302: success, 400: neither, 401: failure, 403: neither, 407: failure, 429: neither, 101: neither, 500: neither}},
		"a form and Basic": {withBasic, both, ofForm},
		"Basic and a form": {login.Config{Sources: []core.KeyFunc{login.BasicUser(), keyfuncs.PostField("username")}}, both, ofForm},
		"JSON, 422 only":   {login.Config{Failure: only(422)}, a, map[int]int{200: success, 400: neither, 401: neither, 422: failure, 101: neither, 500: neither}},
		"Success only":     {login.Config{Success: only(204, 101)}, a, map[int]int{200: failure, 204: success, 302: failure, 401: failure, 101: neither, 500: neither}},
		"both":             {login.Config{Success: only(200, 401), Failure: only(101, 302, 401, 500)}, a, map[int]int{200: success, 204: neither, 302: failure, 401: failure, 101: neither, 500: neither}},
	} {
		for status, want := range row.results {
			s := newSite(t, row.c)
			many(4, func(int) int {
				r := row.request()
				s.guard.Settle(r, s.guard.Check(r), core.Outcome{Status: status, Panicked: true})
				return 0
			})
			s.serve(row.request(), status)
			st := s.status("alice", "203.0.113.1")
			if got := 5 - st.AddressAccount.Remaining; got != int64(want) || st.KnownAddress != (want == success) {
				t.Errorf("%s: after a response with %d: %d failures, want %d; known %t", name, status, got, want, st.KnownAddress)
			}
		}
	}
}

func TestACanceledRequestCountsAsAFailure(t *testing.T) {
	var events []login.EventKind
	s := newSite(t, login.Config{
		Success: func(core.Outcome) bool { return true }, // is not asked
		OnEvent: func(e login.Event) { events = append(events, e.Kind) },
	})
	s.want(many(7, func(int) int { return s.cancel("203.0.113.1", "alice") }), "map[429:2 499:5]")
	if len(events) != 7 || events[0] != login.EventCanceled || events[6] != login.EventDenied {
		t.Errorf("events: %v", events)
	}
	s.wantKnown("203.0.113.1", "alice", false)
}

// found is a redirect as a handler, or its framework, may write it.
func found(location string) core.Outcome {
	return core.Outcome{Status: http.StatusFound, Header: func(name string) string {
		if name == "Location" {
			return location
		}
		return ""
	}}
}

// A redirect that leads back to the form is a failure.
func TestRedirectFails(t *testing.T) {
	for locations, rows := range map[string]map[string]bool{
		"/login": {
			"/login": false, "/login?error=1": false, "/login#form": false, "/login/": false, "https://example.org/login?x": false,
			"//example.org/login": false, "login?error=1": false, "./login": false, "?error=1": false, "#form": false,
			"/home/../login": false, "/%6Cogin": false, "\t/login": false, " /login": false, "/login \t": false, "/lo%zzgin": false, "/login?next=https://example.org/home": false,
			"/": true, "/home": true, "home": true, "https://example.org": true, "/logins": true, "/Login": true,
			"/home?from=/login": true, "/app/login": true, "": true,
		},
		"/": {"/": false, "https://example.org": false, "https://example.org?x=1": false, "/home": true},
		"/app/login": {
			"login": false, "/app/login": false, "../app/login": false, "/login": true, "../login": true,
		},
		":login": {"/:login": false, "/home": true}, // not a URL
	} {
		success := login.RedirectFails("/elsewhere", locations)
		for location, want := range rows {
			if got := success(found(location)); got != want {
				t.Errorf("redirect to %q, form at %q: success %v, want %v", location, locations, got, want)
			}
		}
	}
	success := login.RedirectFails("/login")
	for status, want := range map[int]bool{299: true, 300: false, 399: false, 400: false} {
		o := found("/login")
		if o.Status = status; success(o) != want || status == 400 && login.RedirectFails("/elsewhere")(o) {
			t.Errorf("status %d with the Location /login: success %v, want %v", status, !want, want)
		}
	}
	for status, want := range map[int]bool{200: true, 302: true, 400: false} {
		if got := success(core.Outcome{Status: status}); got != want {
			t.Errorf("status %d, headers not known: success %v, want %v", status, got, want)
		}
	}
}

func ExampleRedirectFails() {
	success := login.RedirectFails("/login")
	fmt.Println(success(found("/login?error=password")), success(found("/home")))
	// Output: false true
}
