package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
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
	hooks := hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return "tenant 7", nil }}
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

// What the page shows of a second is not changed by what comes while it is made: a limiter that comes before the others
// by name, and other limits of a rule.
func TestTheStateOfASecondStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var page *live.Page
		meanwhile := func() {
			page.Observe("a", []core.Rule{userRule})
			page.Observe("m", []core.Rule{{Name: "user", Limits: []core.Limit{core.PerHour(7)}}})
		}
		page = core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string {
			if meanwhile != nil {
				meanwhile()
				meanwhile = nil
			}
			return key
		}}))
		t.Cleanup(func() { _ = page.Close() })
		for _, name := range []string{"m", "n", "o"} {
			decided := page.Observe(name, []core.Rule{userRule}).Decided
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: "k", Capacity: 3})
		}
		v := follow(t, page)
		time.Sleep(1500 * time.Millisecond)
		for i, want := range [][]string{{"m", "n", "o"}, {"a", "m", "n", "o"}} {
			var got []string
			for _, l := range v.all()[i].Limiters {
				got = append(got, l.Name)
			}
			if !slices.Equal(got, want) {
				t.Errorf("event %d: got the limiters %q, want %q", i, got, want)
			}
		}
		if got, want := v.all()[0].Limiters[0].Rules[0].Limits, any([]any{core.PerMinute(3).String()}); !slices.Equal(got.([]any), want.([]any)) {
			t.Errorf("got the limits %v, want %v", got, want)
		}
	})
}

// Of an action on a row, the application and the log learn the rule and the key, not the hash that the browser has sent.
func TestWhoChangesARowIsToldTheKey(t *testing.T) {
	var asked live.Action
	s := newSite(t, live.Config{Authorize: func(_ *http.Request, a live.Action) (string, error) {
		asked = a
		return "olga", nil
	}}, core.Config{})
	s.take(5, "alice")
	id := s.watch()().Limiters[0].Denied[0].ID
	if got := s.post(`{"do":"unblock","limiter":"api","id":"` + id + `"}`); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	if want := (live.Action{Name: "unblock", Limiter: "api", Rule: "user", Key: "alice"}); asked != want {
		t.Errorf("Authorize was asked for %+v, want %+v", asked, want)
	}
}

// A key that was near its limit long ago makes room for others: its weight is halved each minute.
func TestKeysThatWereNearTheirLimitLoseWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		near := func(n int) {
			for range n {
				decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: "k", Capacity: 3})
			}
		}
		near(200_000)
		time.Sleep(70 * time.Second)
		near(10)
		time.Sleep(time.Second)
		all := v.all()
		if got := all[len(all)-1].Limiters[0].Near; len(got) != 1 || got[0].Count != 100_010 {
			t.Errorf("got %+v, want a count of 100010: half of 200000, and 10", got)
		}
	})
}

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

// The longest order is done, and so are the shortest and the longest ban.
func TestTheBoundsOfOrders(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	const key = `"limiter":"api","rule":"user","key":"bob"`
	longest := int64(core.MaxWindow / time.Second)
	for order, want := range map[string]int{
		fmt.Sprintf("%-16384s", `{"do":"look",`+key+`}`):            http.StatusOK,
		fmt.Sprintf("%-16385s", `{"do":"look",`+key+`}`):            http.StatusRequestEntityTooLarge,
		`{"do":"ban","seconds":1,` + key + `}`:                      http.StatusOK,
		`{"do":"ban","seconds":0,` + key + `}`:                      http.StatusBadRequest,
		fmt.Sprintf(`{"do":"ban","seconds":%d,%s}`, longest, key):   http.StatusOK,
		fmt.Sprintf(`{"do":"ban","seconds":%d,%s}`, longest+1, key): http.StatusBadRequest,
		`{"do":"unblock",` + key + `}`:                              http.StatusOK,
	} {
		if got := s.post(order); got.status != want {
			t.Errorf("%d bytes, %.60s: %+v, want %d", len(order), order, got, want)
		}
	}
	for line := range strings.Lines(s.log.String()) {
		if ban := strings.Contains(line, "action=ban"); ban != strings.Contains(line, " for=") {
			t.Errorf("only a ban has a time: %s", line)
		}
	}
}

// A wait is shown in whole milliseconds, rounded up: nobody is told to come back too early.
func TestAWaitIsRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		page.Manage(l)
		hit := core.Hit{Rule: "user", Key: "bob"}
		if err := l.Block(t.Context(), time.Second, hit); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			sleep time.Duration
			want  int64
		}{{0, 1000}, {time.Microsecond, 1000}, {998 * time.Microsecond, 1000}, {time.Microsecond, 999}, {time.Microsecond, 999}} {
			time.Sleep(step.sleep)
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"do":"look","limiter":"api","rule":"user","key":"bob"}`))
			r.Header.Set("Content-Type", "application/json")
			page.ServeHTTP(w, r)
			var got answered
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || len(got.Limits) != 1 || got.Limits[0].RetryMS != step.want {
				t.Errorf("%d, %s, %v, want a wait of %d ms", w.Code, w.Body, err, step.want)
			}
		}
	})
}

// The first event has the counts of all seconds, whenever the viewer comes.
func TestTheFirstEventOfAViewerIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		allow(l, 1, "alice")
		for second := range 5 {
			v := follow(t, page)
			time.Sleep(time.Second)
			got := v.all()
			v.leave()
			if len(got) == 0 || len(got[0].Limiters[0].Rules[0].Allowed) != 120 {
				t.Errorf("a viewer who comes in second %d: %+v", second, got)
			}
		}
	})
}

// A key that was denied has how long ago that was, in seconds.
func TestHowLongAgoAKeyWasDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, l := newPage(t, live.Config{})
		v := follow(t, page)
		time.Sleep(2500 * time.Millisecond)
		allow(l, 4, "alice")
		time.Sleep(4 * time.Second)
		for _, s := range v.all()[3:] {
			if keys := s.Limiters[0].Denied; len(keys) != 1 || keys[0].Ago != s.Second-2 {
				t.Errorf("second %d: %+v", s.Second, keys)
			}
		}
		v.leave()
	})
}

// A ShowKey that panics ends no page: keys are shown as hashes, and one line says why.
func TestAShowKeyThatPanicsIsLoggedOnce(t *testing.T) {
	s := newSite(t, live.Config{ShowKey: func(_, _, key string) string {
		if key == "alice" {
			panic("who is that?")
		}
		return ""
	}}, core.Config{})
	s.take(200, "alice", "bob")
	for range 2 {
		next := s.watch()
		for range 2 {
			keys := next().Limiters[0].Denied
			if len(keys) != 2 || !strings.HasPrefix(keys[0].Label, "#") || !strings.HasPrefix(keys[1].Label, "#") || keys[0].Label == keys[1].Label {
				t.Errorf("denied most: %+v", keys)
			}
		}
	}
	s.server.CloseClientConnections()
	_ = s.page.Close()
	s.server.Close()
	if log := s.log.String(); strings.Count(log, "ShowKey panicked") != 1 || !strings.Contains(log, "who is that?") || !strings.Contains(log, "stack=") {
		t.Errorf("the log says:\n%s", log)
	}
}
