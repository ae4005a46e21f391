package login_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/login"
)

// call is a remote procedure call, which has no body.
type call struct{ *request }

func (r call) Body(int) ([]byte, error) { return nil, requestlog.ErrNoBody }

func (r call) Value(key any) any {
	if key == (requestlog.NoBodyKey{}) {
		return requestlog.ErrNoBody
	}
	return nil
}

// A guard with Config.Field tells the client of a remote procedure call that the field is
// read from bodies only, and not that the server has failed.
func TestAFieldIsNotReadFromARemoteProcedureCall(t *testing.T) {
	guard, err := login.NewGuard(login.Config{Field: "username", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close() //nolint:errcheck // it has nothing of its own but counters
	d := guard.Check(call{form("203.0.113.1", "alice")})
	var bad *core.BadRequestError
	if !errors.As(d.Err, &bad) || !strings.Contains(bad.Detail, "use a key function that reads the message") {
		t.Errorf("the attempt ends with %v, %v", d, d.Err)
	}
}

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
