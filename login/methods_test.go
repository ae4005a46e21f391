package login_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

func TestARequestWithAnotherMethodIsLimitedOnlyIfItHasABody(t *testing.T) {
	s := newSite(t, login.Config{})
	page := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1"}
	s.want(many(100, func(int) int { return s.serve(page, 200) }), "map[200:100]")
	hidden := form("203.0.113.1", "alice")
	hidden.method = http.MethodGet
	s.want(many(7, func(int) int { return s.serve(hidden, 401) }), "map[401:5 429:2]")
	s = newSite(t, login.Config{Methods: []string{"PUT", "GET"}})
	s.want(many(25, func(int) int { return s.serve(page, 200) }), "map[400:20 429:5]")
	page.method = http.MethodHead // routers send it to the handlers of GET
	s.want(many(5, func(int) int { return s.serve(page, 200) }), "map[429:5]")
}

// The guard neither writes into the slices of the caller nor follows changes of them.
func TestAGuardHasSlicesOfItsOwn(t *testing.T) {
	for _, first := range []string{"GET", "PUT"} {
		methods, sources := []string{first, "PATCH", "DELETE"}, []core.KeyFunc{login.BasicUser()}
		s := newSite(t, login.Config{Methods: methods[:1], Sources: sources})
		if methods[1] != "PATCH" {
			t.Errorf("%s: the caller's slice is %q", first, methods)
		}
		methods[0], sources[0] = "PATCH", func([]byte, core.Request) ([]byte, error) { return []byte("other"), nil }
		r := &request{ctx: context.Background(), method: first, peer: "203.0.113.1", header: http.Header{}}
		s.want(many(1, func(int) int { return s.serve(r, 401) }), "map[400:1]")
	}
}

// The handler of a request that cannot log in has checked no password.
func TestARequestWithAnotherMethodIsNeverASuccess(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPut} {
		var events []login.EventKind
		s := newSite(t, login.Config{OnEvent: func(e login.Event) { events = append(events, e.Kind) }})
		other := form("203.0.113.1", "alice")
		other.method = method
		s.want(many(4, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:4]")
		s.want(many(3, func(int) int { return s.serve(other, 200) }), "map[200:3]")
		s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:1 429:2]")
		if slices.Contains(events, login.EventSucceeded) {
			t.Errorf("%s: events %v", method, events)
		}
		s.want(many(120, func(i int) int { return s.wrong(ip(i), "alice") }), "map[401:95 429:25]") // the account is over its limit
		s.want(many(2, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[429:2]")
		if owner := s.right("203.0.113.77", "bob"); owner != http.StatusOK {
			t.Errorf("%s: another account: %d", method, owner)
		}
	}
}

// A handler of Basic authentication may serve methods that Config.Methods does not
// name.
func TestBasicAuthenticationIsLimitedWithEveryMethod(t *testing.T) {
	for _, methods := range [][]string{nil, {"GET"}, {"POST"}} {
		for _, method := range []string{"GET", "HEAD", "POST", "PROPFIND"} {
			guard := core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{login.BasicUser()}, Methods: methods, Log: slog.New(slog.DiscardHandler)}))
			r := &request{ctx: context.Background(), method: method, peer: "203.0.113.1", header: http.Header{"Authorization": {"Basic YWxpY2U6eA=="}}}
			allowed := 0
			for range 8 {
				if d := guard.Check(r); d.Allowed {
					allowed++
					guard.Settle(r, d, core.Outcome{Status: http.StatusUnauthorized})
				}
			}
			if allowed != 5 {
				t.Errorf("Methods %q, %s: %d wrong passwords are checked, want 5", methods, method, allowed)
			}
			if err := guard.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
