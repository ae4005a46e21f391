package live_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// An order is done as it was sent, or not at all.
func TestAnOrderThatIsNotWhatItSeems(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	order := `{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"`
	for name, text := range map[string]string{
		"a key that is not UTF-8": order + "\xff\xfe\"}",
		"two orders":              order + `a"}` + order + `b"}`,
		"something behind it":     order + `a"} x`,
	} {
		if got := s.post(text); got.status != http.StatusBadRequest {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, key := range []string{"a", "b", "\xff\xfe", "\ufffd\ufffd"} {
		if !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: key}) {
			t.Errorf("%q is banned", key)
		}
	}
}

// gone sends a request whose client has hung up already, and returns the status.
func gone(page http.Handler, method, target, order string) int {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(order))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Code
}

// A viewer that has gone makes room for another.
func TestViewersThatGoMakeRoom(t *testing.T) {
	page := core.Must(live.New(live.Config{}))
	defer page.Close() //nolint:errcheck // always nil
	for i := range 100 {
		if got := gone(page, http.MethodGet, "/?events", ""); got != http.StatusOK {
			t.Fatalf("viewer %d: status %d", i, got)
		}
	}
}

// A key is another one in another rule: the page must not show that they are the same.
func TestTheHashOfAKeyOfAnotherRule(t *testing.T) {
	other := core.Rule{Name: "other", Limits: []core.Limit{core.PerMinute(3)}}
	s := newSite(t, live.Config{}, core.Config{Rules: []core.Rule{userRule, other}})
	for range 5 {
		for _, rule := range []string{"user", "other"} {
			s.limiter.Allow(t.Context(), core.Hit{Rule: rule, Key: "alice"})
		}
	}
	keys := s.watch()().Limiters[0].Denied
	if len(keys) != 2 || keys[0].ID == keys[1].ID || keys[0].Label == keys[1].Label {
		t.Errorf("%+v", keys)
	}
}

// So is a key with what KeyExtra has added: an action on a row must not be done to the key of another tenant.
func TestTheHashOfAKeyOfAnotherTenant(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for range 5 {
		for _, tenant := range []string{"", "tenant 1", "tenant 2"} {
			s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice", Extra: tenant})
		}
	}
	ids := map[string]bool{}
	for _, k := range s.watch()().Limiters[0].Denied {
		ids[k.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("%d ids, want one for each tenant", len(ids))
	}
}

type ended struct{ err error }

func (e *ended) Unblock(ctx context.Context, _ string) error {
	e.err = ctx.Err()
	return nil
}

func (e *ended) UnblockAddress(context.Context, string) error { return nil }

// What was begun is done, also if the browser goes away.
func TestAClientThatHangsUpEndsNoOrder(t *testing.T) {
	page := core.Must(live.New(live.Config{Authorize: mayChange("olga")}))
	defer page.Close() //nolint:errcheck // always nil
	login := &ended{err: context.Canceled}
	page.ManageLogin("login", login)
	if got := gone(page, http.MethodPost, "/", `{"do":"forget","limiter":"login","key":"alice"}`); got != http.StatusOK || login.err != nil {
		t.Errorf("status %d, %v", got, login.err)
	}
}
