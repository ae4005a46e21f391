package login_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/login"
)

// cancel is an attempt whose client goes away while the handler works.
func (s *site) cancel(ip, user string) int {
	r := form(ip, user)
	d := s.guard.Check(r)
	if !d.Allowed {
		return s.guard.Deny(r, d).Status
	}
	s.reached.Add(1)
	s.guard.Settle(r, d, core.Outcome{Status: core.StatusCanceled, Canceled: true})
	return core.StatusCanceled
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

// The same on an HTTP server. The handler writes nothing if its context has ended.
func TestACanceledRequestOnAServerCountsAsAFailure(t *testing.T) {
	guard, err := login.NewGuard(login.Config{Field: "username", Attempts: core.PerMinute(1000)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httplimit.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.PostFormValue("password") == "wait" {
				entered <- struct{}{}
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		})).ServeHTTP(w, r)
		left <- struct{}{}
	}))
	defer server.Close()
	post := func(ctx context.Context, password string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("username=alice&password="+password))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := server.Client().Do(req)
		if err != nil {
			return core.StatusCanceled
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	got := many(15, func(i int) int {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if i != 4 {
			defer func() { <-left }()
			return post(ctx, "guess")
		}
		status := make(chan int)
		go func() { status <- post(ctx, "wait") }()
		<-entered
		cancel()
		<-left
		return <-status
	})
	if want := "map[401:4 429:10 499:1]"; got != want {
		t.Errorf("statuses %s, want %s", got, want)
	}
}

// A handler that panics after its client has gone has failed.
func TestAPanicAfterTheClientHasGoneIsAFailedAttempt(t *testing.T) {
	for panicked, want := range map[bool]login.EventKind{false: login.EventCanceled, true: login.EventFailed} {
		var events []login.EventKind
		s := newSite(t, login.Config{OnEvent: func(e login.Event) { events = append(events, e.Kind) }})
		r := form("203.0.113.1", "alice")
		s.guard.Settle(r, s.guard.Check(r), core.Outcome{Status: 500, Canceled: true, Panicked: panicked})
		if len(events) != 1 || events[0] != want {
			t.Errorf("panicked %t: events %v, want %v", panicked, events, want)
		}
	}
}
