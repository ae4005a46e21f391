package live_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/live"
)

const banAlice = `{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"alice"}`

// plain is a store that several processes share and that can block no key.
type plain struct{ *core.Memory }

func (plain) Guarantees() core.Guarantees {
	return core.Guarantees{Ops: core.AllOps &^ core.OpBlock, Exact: true, Shared: true, OnFailure: core.FailClosed}
}

func (p plain) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := p.Memory.Open(limiter, rules)
	return plainCounters{c}, err
}

type plainCounters struct{ core.Counters }

func (c plainCounters) Do(ctx context.Context, b *core.Batch) error {
	if b.Op == core.OpBlock {
		return core.ErrUnsupported
	}
	return c.Counters.Do(ctx, b)
}

// A store that can block no key has not failed: the operator reads that a ban is impossible there.
func TestABanThatTheStoreCannotDo(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: plain{core.Must(core.NewMemory(core.MemoryConfig{}))}})
	if got := s.post(banAlice); got.status != http.StatusNotImplemented || !strings.Contains(got.Error, "cannot do that") {
		t.Errorf("%+v", got)
	}
	if l := s.watch()().Limiters[0]; !l.Managed || !l.Shared {
		t.Errorf("managed %t, shared %t, want a shared store", l.Managed, l.Shared)
	}
}

// The bounds of an order are those that the errors name.
func TestOrdersAtTheirBounds(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	const longest = 16 << 10
	whole := unblockAlice + strings.Repeat(" ", longest-len(unblockAlice))
	for name, row := range map[string]struct {
		order   string
		headers []string
		status  int
	}{
		"the longest order":    {whole, nil, http.StatusOK},
		"a byte more":          {whole + " ", nil, http.StatusRequestEntityTooLarge},
		"with a charset":       {unblockAlice, []string{"Content-Type", "Application/JSON; charset=utf-8"}, http.StatusOK},
		"a ban of a second":    {strings.Replace(banAlice, "60", "1", 1), nil, http.StatusOK},
		"a ban of 0 seconds":   {strings.Replace(banAlice, "60", "0", 1), nil, http.StatusBadRequest},
		"the longest ban":      {strings.Replace(banAlice, "60", "31622400", 1), nil, http.StatusOK},
		"a second more":        {strings.Replace(banAlice, "60", "31622401", 1), nil, http.StatusBadRequest},
		"nothing is the order": {"", nil, http.StatusBadRequest},
	} {
		if got := s.post(row.order, row.headers...); got.status != row.status {
			t.Errorf("%s: %+v, want %d", name, got, row.status)
		}
	}
}

// A wait is rounded up: a request that comes when it has passed is allowed.
func TestTheWaitOfALookIsRoundedUp(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	rule := core.Rule{Name: "user", Limits: []core.Limit{{Quota: 3, Window: time.Minute, Algorithm: core.FixedWindow}}}
	s := newSite(t, live.Config{}, core.Config{Store: core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now})), Rules: []core.Rule{rule}})
	s.take(3, "alice")
	clock.Advance(time.Microsecond)
	if got := s.post(strings.Replace(unblockAlice, "unblock", "look", 1)); len(got.Limits) != 1 || got.Limits[0].RetryMS != 60_000 {
		t.Errorf("%+v, want a wait of 60000 ms", got)
	}
}

// An address is let in although the failures of the username could not be forgotten.
func TestAnAddressIsLetInIfAUsernameCannotBe(t *testing.T) {
	s, g := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{}), &guard{err: errors.New("the disk is full")}
	s.page.ManageLogin("login", g)
	if got := s.post(`{"do":"forget","limiter":"login","key":"192.0.2.1"}`); got.status != http.StatusServiceUnavailable || fmt.Sprint(g.forgot) != "[192.0.2.1 address 192.0.2.1]" {
		t.Errorf("%+v, %v", got, g.forgot)
	}
}

// The logins are in the order of their names.
func TestTheLoginsOfAPageAreSorted(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	names := strings.Fields("admin blog docs forum mail shop wiki")
	for _, name := range names {
		s.page.ManageLogin(name, &guard{})
	}
	if got := s.watch()().Logins; !slices.Equal(got, names) {
		t.Errorf("%v", got)
	}
}

// No answer of the page is stored, named to another site, or taken for another kind of content.
func TestTheHeadersOfEveryAnswer(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for _, row := range []struct {
		method, query string
		status        int
		kind          string
	}{
		{http.MethodGet, "", 200, "text/html; charset=utf-8"},
		{http.MethodGet, "?events", 200, "text/event-stream"},
		{http.MethodHead, "", 200, "text/html; charset=utf-8"},
		{http.MethodPost, "", 415, "application/json"},
		{http.MethodPut, "", 405, "application/json"},
		{http.MethodHead, "?events", 200, "text/html; charset=utf-8"}, // not a stream, which does not end
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, s.url()+row.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != row.status || h.Get("Content-Type") != row.kind {
			t.Errorf("%s %s: %d %s, want %d %s", row.method, row.query, resp.StatusCode, h.Get("Content-Type"), row.status, row.kind)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: %v", row.method, row.query, h)
		}
		if allow := h.Get("Allow"); (allow == "GET, HEAD, POST") != (row.status == http.StatusMethodNotAllowed) {
			t.Errorf("%s %s: Allow: %q", row.method, row.query, allow)
		}
	}
}
