package live_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/login"
)

func TestThePageShowsWhatIsDecided(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	next := s.watch()
	first := next()
	if l := first.Limiters; len(l) != 1 || l[0].Name != "api" || !l[0].Managed || l[0].Shared || len(l[0].Rules) != 1 || len(l[0].Rules[0].Allowed) != 120 {
		t.Fatalf("%+v", first)
	}
	s.take(5, "alice")
	s.take(2, "bob")
	allowed, denied := 0, 0
	var last shown
	for allowed+denied < 7 {
		last = next()
		allowed += last.Limiters[0].Rules[0].Allowed[0]
		denied += last.Limiters[0].Rules[0].Denied[0]
	}
	if allowed != 5 || denied != 2 || !last.ReadOnly || last.Instance != "one" {
		t.Errorf("%d allowed, %d denied: %+v", allowed, denied, last)
	}
	l := last.Limiters[0]
	if len(l.Denied) != 1 || l.Denied[0].Count != 2 || l.Denied[0].Rule != "user" || strings.Contains(l.Denied[0].Label, "alice") {
		t.Errorf("denied most: %+v", l.Denied)
	}
	if len(l.Near) != 2 || l.Near[0].Used != 1 || l.Near[1].Used < 0.66 || l.Near[1].Used > 0.67 {
		t.Errorf("nearest: %+v", l.Near)
	}
}

// Without Authorize, everything can be looked at and nothing can be changed.
func TestNothingChangesWithoutAuthorize(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	s.take(4, "alice")
	look := s.post(`{"do":"look","limiter":"api","rule":"user","key":"alice"}`)
	if look.status != 200 || len(look.Limits) != 1 || look.Limits[0].Remaining != 0 || !look.Limits[0].Exceeded || look.Limits[0].RetryMS <= 0 || look.Limits[0].Capacity != 3 {
		t.Errorf("%+v", look)
	}
	for _, order := range []string{
		`{"do":"unblock","limiter":"api","rule":"user","key":"alice"}`,
		`{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"bob"}`,
	} {
		if got := s.post(order); got.status != http.StatusForbidden || !strings.Contains(got.Error, "Authorize") {
			t.Errorf("%s: %+v", order, got)
		}
	}
	if s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) || !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "bob"}) {
		t.Error("something has changed")
	}
}

func TestAnOperatorLetsAClientInAndKeepsAnotherOut(t *testing.T) {
	var asked []live.Action
	s := newSite(t, live.Config{Authorize: func(_ *http.Request, a live.Action) (string, error) {
		asked = append(asked, a)
		return "olga", nil
	}}, core.Config{})
	s.take(4, "alice")
	if got := s.post(`{"do":"unblock","limiter":"api","rule":"user","key":"alice"}`); got.status != 200 || got.Limits[0].Remaining != 3 {
		t.Errorf("%+v", got)
	}
	if got := s.post(`{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"bob"}`); got.status != 200 || !got.Limits[0].Exceeded || got.Limits[0].RetryMS < 59_000 {
		t.Errorf("%+v", got)
	}
	if !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) || s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "bob"}) {
		t.Error("the orders had no effect")
	}
	if got := s.post(`{"do":"unblock","limiter":"api","rule":"user","key":"bob"}`); got.status != 200 || !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "bob"}) {
		t.Errorf("the ban has not ended: %+v", got)
	}
	want := []live.Action{
		{Name: "unblock", Limiter: "api", Rule: "user", Key: "alice"},
		{Name: "ban", Limiter: "api", Rule: "user", Key: "bob", For: time.Minute},
		{Name: "unblock", Limiter: "api", Rule: "user", Key: "bob"},
	}
	for i, a := range want {
		if i >= len(asked) || asked[i] != a {
			t.Errorf("Authorize was asked for %+v, want %+v", asked, want)
			break
		}
	}
	if log := s.log.String(); strings.Count(log, "an action was done") != 3 || !strings.Contains(log, "who=olga") || !strings.Contains(log, "key=bob") || !strings.Contains(log, "for=1m0s") {
		t.Errorf("the log is %s", log)
	}
}

// The key of a row is found by its id, with what KeyExtra has added.
func TestARowIsUnblockedByItsID(t *testing.T) {
	hooks := core.HookFuncs{KeyExtraFunc: func(core.Request) (string, error) { return "tenant 7", nil }}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Hooks: hooks})
	hit := core.Hit{Rule: "user", Key: "<script>alert(1)</script>", Extra: "tenant 7"}
	for range 5 {
		s.limiter.Allow(t.Context(), hit)
	}
	rows := s.watch()().Limiters[0].Denied
	if len(rows) != 1 || rows[0].Count != 2 {
		t.Fatalf("%+v", rows)
	}
	if got := s.post(`{"do":"unblock","limiter":"api","id":"` + rows[0].ID + `"}`); got.status != 200 || !s.limiter.Allow(t.Context(), hit) {
		t.Errorf("%+v", got)
	}
	if got := s.post(`{"do":"unblock","limiter":"api","id":"0000"}`); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

func TestOrdersThatAreDenied(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	for _, row := range []struct {
		name, order string
		headers     []string
		status      int
	}{
		{"another site", `{"do":"unblock","limiter":"api","rule":"user","key":"a"}`, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site of the same domain", `{"do":"unblock","limiter":"api","rule":"user","key":"a"}`, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"another origin, in an old browser", `{"do":"unblock","limiter":"api","rule":"user","key":"a"}`, []string{"Origin", "https://evil.example"}, 403},
		{"a form", `{"do":"unblock","limiter":"api","rule":"user","key":"a"}`, []string{"Content-Type", "text/plain"}, 415},
		{"no JSON", `do=unblock`, nil, 400},
		{"an unknown field", `{"do":"unblock","limiter":"api","rule":"user","key":"a","for":1}`, nil, 400},
		{"too long", `{"do":"unblock","limiter":"api","rule":"user","key":"` + strings.Repeat("a", 20_000) + `"}`, nil, 413},
		{"an unknown order", `{"do":"drop","limiter":"api","rule":"user","key":"a"}`, nil, 400},
		{"no order", `{"limiter":"api","rule":"user","key":"a"}`, nil, 400},
		{"an unknown limiter", `{"do":"look","limiter":"x","rule":"user","key":"a"}`, nil, 404},
		{"an unknown rule", `{"do":"look","limiter":"api","rule":"x","key":"a"}`, nil, 404},
		{"an unknown rule to reset", `{"do":"unblock","limiter":"api","rule":"x","key":"a"}`, nil, 404},
		{"an unknown login", `{"do":"forget","limiter":"x","key":"a"}`, nil, 404},
		{"a ban without an end", `{"do":"ban","limiter":"api","rule":"user","key":"a"}`, nil, 400},
		{"a ban that ends before it begins", `{"do":"ban","seconds":-1,"limiter":"api","rule":"user","key":"a"}`, nil, 400},
		{"a ban of a million years", `{"do":"ban","seconds":31622401,"limiter":"api","rule":"user","key":"a"}`, nil, 400},
	} {
		if got := s.post(row.order, row.headers...); got.status != row.status || got.Error == "" {
			t.Errorf("%s: %+v, want %d", row.name, got, row.status)
		}
	}
	if strings.Contains(s.log.String(), "was done") {
		t.Errorf("the log is %s", s.log)
	}
	if got := strings.Count(s.log.String(), "live: a request from another site was denied"); got != 3 {
		t.Errorf("%d lines on other sites, want 3: %s", got, s.log)
	}
	for method, want := range map[string]int{"PUT": 405, "DELETE": 405, "HEAD": 200} {
		r, _ := http.NewRequest(method, s.url(), nil)
		resp, err := s.server.Client().Do(r)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %v, %v", method, resp, err)
		}
		_ = resp.Body.Close()
	}
}

func TestWhoMayNotIsLogged(t *testing.T) {
	s := newSite(t, live.Config{Authorize: func(*http.Request, live.Action) (string, error) { return "mallory", errors.New("no operator") }}, core.Config{})
	got := s.post(`{"do":"ban","seconds":60,"limiter":"api","rule":"user","key":"bob"}`)
	if got.status != 403 || strings.Contains(got.Error, "operator") || !s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "bob"}) {
		t.Errorf("%+v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "denied") || !strings.Contains(log, "who=mallory") || !strings.Contains(log, "no operator") {
		t.Errorf("the log is %s", log)
	}
}

type guard struct {
	err    error
	forgot []string
}

func (g *guard) Unblock(_ context.Context, username string) error {
	g.forgot = append(g.forgot, username)
	return g.err
}

func TestTheFailuresOfALoginAreForgotten(t *testing.T) {
	s, g := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{}), &guard{}
	s.page.ManageLogin("login", g)
	if got := s.post(`{"do":"forget","limiter":"login","key":"alice"}`); got.status != 200 || len(g.forgot) != 1 || g.forgot[0] != "alice" {
		t.Errorf("%+v, %v", got, g.forgot)
	}
	g.err = errors.New("dial tcp 10.0.0.1: refused")
	if got := s.post(`{"do":"forget","limiter":"login","key":"alice"}`); got.status != 503 || strings.Contains(got.Error, "10.0.0.1") {
		t.Errorf("%+v", got)
	}
	if got := s.watch()(); len(got.Logins) != 1 || got.Logins[0] != "login" {
		t.Errorf("%+v", got.Logins)
	}
}

func TestABadConfigurationIsAnError(t *testing.T) {
	if _, err := live.New(live.Config{Secret: []byte("short")}); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "16") {
		t.Error(err)
	}
}

// Two processes with the same secret show the same hash, with different secrets another.
func TestTheHashOfAKey(t *testing.T) {
	label := func(secret string) string {
		s := newSite(t, live.Config{Secret: []byte(secret)}, core.Config{})
		s.take(4, "alice")
		return s.watch()().Limiters[0].Denied[0].Label
	}
	a, b, c := label("0123456789abcdef"), label("0123456789abcdef"), label("0123456789abcdeF")
	if a != b || a == c || len(a) != 11 {
		t.Error(a, b, c)
	}
}

func TestThePageIsSmallAndLocksItselfUp(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	resp, err := s.server.Client().Get(s.url())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	var body bytes.Buffer
	_, _ = body.ReadFrom(resp.Body)
	if body.Len() > 60<<10 || body.Len() < 1000 {
		t.Errorf("%d bytes", body.Len())
	}
	policy := resp.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(body.String(), "innerHTML") || strings.Contains(body.String(), "https://") {
		t.Error("the page takes more than it needs")
	}
	if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error(resp.Header)
	}
}

// A page that is closed ends the events, and can be closed twice.
func TestClosingEndsTheEvents(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"?events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	_ = s.page.Close()
	_ = s.page.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(text), "data: ") {
		t.Errorf("the events end with %v after %d bytes", err, len(text))
	}
}

func TestTooManyViewersAreTurnedAway(t *testing.T) {
	s := newSite(t, live.Config{}, core.Config{})
	for range 32 {
		s.watch()()
	}
	resp, err := s.server.Client().Get(s.url() + "?events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestWhatIsManagedIsNotNil(t *testing.T) {
	p := core.Must(live.New(live.Config{}))
	defer func() { _ = p.Close() }()
	var guard *login.Guard
	for want, manage := range map[string]func(){
		"live: Manage: a limiter is nil: pass those that core.New has returned":                                    func() { p.Manage(nil) },
		"live: ManageLogin: the login is nil: pass one that is not, such as the guard that login.NewGuard returns": func() { p.ManageLogin("site", guard) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("%v, want %s", got, want)
				}
			}()
			manage()
		}()
	}
}
