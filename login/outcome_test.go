package login_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

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
}

// A handler may panic after it has begun the response.
func TestAPanicIsAFailureWhateverTheStatusIs(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusInternalServerError} {
		var e trusts
		s := newSite(t, login.Config{OnEvent: e.event})
		for range 5 {
			r := form("203.0.113.1", "alice")
			s.guard.Settle(r, s.guard.Check(r), core.Outcome{Status: status, Panicked: true})
			if e.last.Kind != login.EventFailed {
				t.Errorf("status %d: event %v", status, e.last.Kind)
			}
		}
		s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
	}
}

// A server error and a protocol upgrade neither count nor reset failures, and Success is not
// asked about them. A second Settle does nothing.
func TestAServerErrorAndAProtocolUpgradeCountAsNothing(t *testing.T) {
	events := 0
	s := newSite(t, login.Config{
		Success: func(o core.Outcome) bool { return o.Status != http.StatusUnauthorized },
		OnEvent: func(login.Event) { events++ },
	})
	for _, status := range []int{401, 401, 401, 401, 500, 101, 599, 401} {
		if got := s.serve(form("203.0.113.1", "alice"), status); got != status {
			t.Errorf("status %d, want %d", got, status)
		}
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
	r := form("203.0.113.2", "bob")
	d := s.guard.Check(r)
	events = 0
	for range 3 {
		s.guard.Settle(r, d, core.Outcome{Status: 200})
	}
	if events != 1 {
		t.Errorf("%d events of one attempt", events)
	}
}

// It may be a decision of another limiter.
func TestADecisionThatIsNotTheGuardsCountsAsNothing(t *testing.T) {
	var events int
	s := newSite(t, login.Config{OnEvent: func(login.Event) { events++ }})
	r := form("203.0.113.1", "alice")
	for _, status := range []int{200, 401, 500} {
		s.guard.Settle(r, core.Decision{Allowed: true}, core.Outcome{Status: status})
	}
	if denial := s.guard.Deny(r, core.Decision{Reason: core.ReasonOverLimit}); denial.Status != http.StatusTooManyRequests {
		t.Errorf("denied with %+v", denial)
	}
	if st := s.guard.Stats(); events != 0 || st != (core.Stats{}) {
		t.Errorf("%d events, %+v", events, st)
	}
}

// First canceled requests only, then four wrong passwords and a canceled request by turns.
func TestACanceledRequestCountsAsAFailure(t *testing.T) {
	var events []login.EventKind
	s := newSite(t, login.Config{
		Success: func(core.Outcome) bool { return true }, // is not asked
		OnEvent: func(e login.Event) { events = append(events, e.Kind) },
	})
	s.want(many(7, func(int) int { return s.cancel("203.0.113.1", "alice") }), "map[429:2 499:5]")
	if len(events) != 7 || events[0] != login.EventCanceled || events[0].String() != "canceled" || events[6] != login.EventDenied {
		t.Errorf("events: %v", events)
	}
	st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1")
	if err != nil || st.KnownAddress || st.Account.Remaining != 95 || st.AddressAccount.Remaining != 0 {
		t.Errorf("%+v, %v", st, err)
	}

	s = newSite(t, login.Config{})
	s.want(many(15, func(i int) int {
		if i%5 == 4 {
			return s.cancel("203.0.113.1", "alice")
		}
		return s.wrong("203.0.113.1", "alice")
	}), "map[401:4 429:10 499:1]")
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
	for status, want := range map[int]bool{299: true, 300: false, 399: false, 400: false, 401: false} {
		for location, want := range map[string]bool{"/login": want, "/home": status < 400} {
			o := found(location)
			o.Status = status
			if got := success(o); got != want {
				t.Errorf("status %d with the Location %q: success %v, want %v", status, location, got, want)
			}
		}
	}
	for status, want := range map[int]bool{200: true, 204: true, 302: true, 304: true, 400: false, 401: false, 422: false} {
		if got := success(core.Outcome{Status: status}); got != want {
			t.Errorf("status %d, headers not known: success %v, want %v", status, got, want)
		}
	}
}

// A redirect to the path of the form is never a success, and no text makes the function
// panic.
func FuzzRedirectFails(f *testing.F) {
	for _, s := range []string{"/login", "login?x=://", "//h/login", "?", "%zz", "mailto:a", "\x00"} {
		f.Add(s, "/login")
	}
	f.Fuzz(func(t *testing.T, location, form string) {
		success := login.RedirectFails(form)
		_ = success(found(location))
		if form == "/login" && success(found("/login?"+location)) {
			t.Errorf("a redirect to /login?%s is a success", location)
		}
	})
}

func ExampleRedirectFails() {
	success := login.RedirectFails("/login")
	fmt.Println(success(found("/login?error=password")), success(found("/home")))
	// Output: false true
}
