package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// order is what the page sends to do something with a key of the rule user.
func order(do, key string) string {
	seconds := ""
	if do == "ban" {
		seconds = `"seconds":60,`
	}
	return fmt.Sprintf(`{"do":"%s",%s"limiter":"api","rule":"user","key":"%s"}`, do, seconds, key)
}

// Without Authorize, everything can be looked at and nothing can be changed.
func TestNothingChangesWithoutAuthorize(t *testing.T) {
	limit := core.Limit{Quota: 3, Window: time.Minute, Algorithm: core.TokenBucket, Burst: 4}
	s := newSite(t, live.Config{}, core.Config{Rules: []core.Rule{{Name: "user", Limits: []core.Limit{limit}}}})
	s.take(4, "alice")
	look := s.post(order("look", "alice"))
	if look.status != 200 || len(look.Limits) != 1 || look.Limits[0].RetryMS <= 0 || !strings.HasPrefix(fmt.Sprint(look.Limits[0]), "{"+limit.String()+" 4 0 true ") {
		t.Errorf("%+v", look)
	}
	for _, o := range []string{order("unblock", "alice"), order("ban", "bob")} {
		if got := s.post(o); got.status != http.StatusForbidden || !strings.Contains(got.Error, "Authorize") {
			t.Errorf("%s: %+v", o, got)
		}
	}
	if s.allows("alice") || !s.allows("bob") || !s.see().ReadOnly {
		t.Error("something has changed")
	}
}

func TestAnOperatorLetsAClientInAndKeepsAnotherOut(t *testing.T) {
	var asked []live.Action
	s := newSite(t, live.Config{Authorize: func(_ *http.Request, a live.Action) (string, error) {
		asked = append(asked, a)
		return "olga", nil
	}}, core.Config{})
	s.take(5, "alice")
	if got := s.post(order("unblock", "alice")); got.status != 200 || got.Limits[0].Remaining != 3 || !s.allows("alice") {
		t.Errorf("%+v", got)
	}
	if got := s.post(order("ban", "bob")); got.status != 200 || !got.Limits[0].Exceeded || got.Limits[0].RetryMS < 59_000 || s.allows("bob") {
		t.Errorf("%+v", got)
	}
	id := s.see().Limiters[0].Denied[0].ID // the application and the log learn the key
	if got := s.post(`{"do":"unblock","limiter":"api","id":"` + id + `"}`); got.status != 200 {
		t.Errorf("%+v", got)
	}
	want := []live.Action{
		{Name: "unblock", Limiter: "api", Rule: "user", Key: "alice"},
		{Name: "ban", Limiter: "api", Rule: "user", Key: "bob", For: time.Minute},
		{Name: "unblock", Limiter: "api", Rule: "user", Key: "alice"},
	}
	if fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("Authorize was asked for %+v, want %+v", asked, want)
	}
	const done = `level=INFO msg="live: an action was done" action=`
	const unblocked = done + "unblock limiter=api rule=user key=alice who=olga from=192.0.2.1:1234\n"
	if log := s.lines(); log != unblocked+done+"ban limiter=api rule=user key=bob who=olga from=192.0.2.1:1234 for=1m0s\n"+unblocked {
		t.Errorf("the log is %s", log)
	}
}

// The key of a row is found by its id: it is another one in another rule, and with what KeyExtra
// has added.
func TestARowIsUnblockedByItsID(t *testing.T) {
	other := core.Rule{Name: "other", Limits: userRule.Limits}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Rules: []core.Rule{userRule, other}})
	hits := []core.Hit{{Rule: "user", Key: "<b>"}, {Rule: "user", Key: "<b>", Extra: "tenant 1"}, {Rule: "user", Key: "<b>tenant 2"}, {Rule: "user", Key: "<b>", Extra: "tenant 2"}, {Rule: "other", Key: "<b>"}}
	for i, hit := range hits {
		for range 10 - i {
			s.limiter.Allow(t.Context(), hit)
		}
	}
	s.take(2, "near")
	rows, near := s.see().Limiters[0].Denied, s.see().Limiters[0].Near
	for i := range 20 { // they take the places of the others on the page, which keeps those all the same
		s.take(14, fmt.Sprint(i))
	}
	if len(rows) != len(hits) {
		t.Fatalf("%d rows of %d keys: %+v", len(rows), len(hits), rows)
	}
	for i, row := range rows {
		if got := s.post(`{"do":"unblock","limiter":"api","id":"` + row.ID + `"}`); got.status != 200 {
			t.Errorf("%+v", got)
		}
		for j, hit := range hits {
			if d, err := s.limiter.Peek(t.Context(), 1, hit); err != nil || d.Allowed != (j <= i) {
				t.Errorf("%d rows are unblocked: %+v: %v, %v", i+1, hit, d, err)
			}
		}
	}
	if got := s.post(`{"do":"look","limiter":"api","id":"` + near[len(near)-1].ID + `"}`); got.status != 200 || got.Limits[0].Remaining != 1 {
		t.Errorf("%+v", got)
	}
	if got := s.post(`{"do":"unblock","limiter":"api","id":"0000"}`); got.status != 404 || got.Error != "the page no longer keeps this key: type it" {
		t.Errorf("%+v", got)
	}
}

// The page keeps the beginning of a long key only, which may be that of another one.
func TestAKeyThatIsTooLongToBeKeptCannotBeChosen(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	s.take(5, strings.Repeat("a", 257))
	s.take(4, strings.Repeat("b", 256))
	for range 6 {
		s.limiter.Allow(t.Context(), core.Hit{Rule: "user", Key: "c", Extra: strings.Repeat("c", 256)})
	}
	for i, row := range s.see().Limiters[0].Denied {
		cut, status := i < 2, map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[i < 2]
		if got := s.post(`{"do":"unblock","limiter":"api","id":"` + row.ID + `"}`); row.Cut != cut || row.Count != 3-i || got.status != status {
			t.Errorf("%+v: %+v", row, got)
		}
	}
}

// An order is done as it was sent, or not at all.
func TestOrdersThatAreDenied(t *testing.T) {
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{})
	a := order("ban", "a")
	ban := func(seconds string) string { return strings.Replace(a, "60", seconds, 1) }
	s.page.Observe("seen", nil)
	const unreadable, json = "the order cannot be read: ", "send application/json"
	for name, row := range map[string]struct {
		order   string
		headers []string
		status  int
		says    string // how the text begins
	}{
		"another site":                          {a, []string{"Sec-Fetch-Site", "cross-site"}, 403, "the request comes from another site"},
		"another site of the same domain":       {a, []string{"Sec-Fetch-Site", "same-site"}, 403, "the request comes from another site"},
		"another origin, in an old browser":     {a, []string{"Origin", "https://evil.example"}, 403, "the request comes from another site"},
		"a form":                                {a, []string{"Content-Type", "text/plain"}, 415, json},
		"a form of another type":                {a, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, json},
		"no type":                               {a, []string{"Content-Type", ""}, 415, json},
		"a malformed type":                      {a, []string{"Content-Type", "application/json; x"}, 415, json},
		"no JSON":                               {`do=ban`, nil, 400, unreadable + "invalid character 'd'"},
		"nothing":                               {"", nil, 400, unreadable + "EOF"},
		"an unknown field":                      {strings.Replace(a, "{", `{"why":"",`, 1), nil, 400, unreadable + `json: unknown field "why"`},
		"two orders":                            {a + a, nil, 400, "something follows the order"},
		"something behind it":                   {a + " x", nil, 400, "something follows the order"},
		"a key that is not UTF-8":               {order("ban", "\xff\xfe"), nil, 400, "the order is not UTF-8"},
		"too long":                              {fmt.Sprintf("%-16385s", a), nil, 413, "the order is longer than 16384 bytes"},
		"an unknown order":                      {order("drop", "a"), nil, 400, `the order "drop" is unknown`},
		"no order":                              {order("", "a"), nil, 400, `the order "" is unknown`},
		"an unknown limiter":                    {strings.Replace(a, "api", "x", 1), nil, 404, `the page does not manage a limiter "x"`},
		"a limiter that is only observed":       {strings.Replace(a, "api", "seen", 1), nil, 404, `the page does not manage a limiter "seen"`},
		"an unknown rule":                       {strings.Replace(a, "user", "x", 1), nil, 404, `the limiter has no rule "x"`},
		"an unknown rule to look at":            {strings.Replace(order("look", "a"), "user", "x", 1), nil, 404, `the limiter has no rule "x"`},
		"an unknown login":                      {`{"do":"forget","limiter":"x","key":"a"}`, nil, 404, `the page does not manage a login "x"`},
		"a ban that ends before it begins":      {ban("-1"), nil, 400, "a ban lasts 1 to 31622400 seconds, not -1"},
		"a ban of no time":                      {ban("0"), nil, 400, "a ban lasts 1 to 31622400 seconds, not 0"},
		"a ban for longer than windows can be":  {ban("31622401"), nil, 400, "a ban lasts 1 to 31622400 seconds, not 31622401"},
		"a ban for as long as nanoseconds last": {ban("18446744074"), nil, 400, "a ban lasts 1 to 31622400 seconds, not 18446744074"},
	} {
		if got := s.post(row.order, row.headers...); got.status != row.status || !strings.HasPrefix(got.Error, row.says) {
			t.Errorf("%s: %+v, want %d, %s", name, got, row.status, row.says)
		}
	}
	if strings.Contains(s.log.String(), "was done") || !s.allows("a") || !s.allows("\xff\xfe") {
		t.Errorf("the log is %s", s.log)
	}
	const line = `level=WARN msg="live: a request from another site was denied" from=192.0.2.1:1234 origin=`
	if log := s.lines(); strings.Count(log, line+"\"\"\n") != 2 || strings.Count(log, line+"https://evil.example\n") != 1 {
		t.Errorf("lines on other sites: %s", log)
	}
	for name, got := range map[string]answered{
		"the longest order": s.post(fmt.Sprintf("%-16384s", a)), "with a charset": s.post(a, "Content-Type", "Application/JSON; charset=utf-8"),
		"the shortest ban": s.post(ban("1")), "the longest ban": s.post(ban("31622400")),
	} {
		if got.status != 200 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhoMayNotIsLogged(t *testing.T) {
	s := newSite(t, live.Config{Authorize: func(*http.Request, live.Action) (string, error) { return "mallory", errors.New("no operator") }}, core.Config{})
	if got := s.post(order("ban", "bob")); got.status != 403 || got.Error != "you may not do that" || !s.allows("bob") {
		t.Errorf("%+v", got)
	}
	if log := s.lines(); log != `level=WARN msg="live: an action was denied" action=ban limiter=api rule=user key=bob who=mallory from=192.0.2.1:1234 for=1m0s error="no operator"`+"\n" {
		t.Errorf("the log is %s", log)
	}
}

// guard is a login whose store may fail.
type guard struct {
	err    error
	forgot []string
}

func (g *guard) Unblock(ctx context.Context, username string) error {
	g.forgot = append(g.forgot, username)
	return errors.Join(ctx.Err(), g.err)
}

func (g *guard) UnblockAddress(ctx context.Context, address string) error {
	g.forgot = append(g.forgot, "address "+address)
	return errors.Join(ctx.Err(), g.err)
}

// The answer to forget says what is let in, and what is not. What was begun is done, although
// the browser has gone: an address is let in if the username cannot be.
func TestTheFailuresOfALoginAreForgotten(t *testing.T) {
	var asked live.Action
	s, g := newSite(t, live.Config{Authorize: func(_ *http.Request, a live.Action) (string, error) {
		asked = a
		return "olga", nil
	}}, core.Config{}), &guard{}
	s.page.ManageLogin("site", g)
	s.page.ManageLogin("app", &guard{})
	if got := s.see().Logins; fmt.Sprint(got) != "[app site]" {
		t.Errorf("%v", got)
	}
	gone, alone := errors.New("dial tcp 10.0.0.1: refused"), fmt.Errorf("resilient: %w", core.ErrDegraded)
	for _, row := range []struct {
		key    string
		err    error
		status int
		forgot string
		text   string
	}{
		{"alice", nil, 200, "[alice]", "An address that has tried too often is still denied"},
		{"192.0.2.1", nil, 200, "[192.0.2.1 address 192.0.2.1]", "The failures of a username still count"},
		{"2001:db8::1", nil, 200, "[2001:db8::1 address 2001:db8::1]", "The failures of a username still count"},
		{"alice", alone, 200, "[alice]", "only this process"},
		{"192.0.2.1", gone, 503, "[192.0.2.1 address 192.0.2.1]", "the store failed"},
	} {
		g.err, g.forgot = row.err, nil
		got := s.post(`{"do":"forget","limiter":"site","key":"` + row.key + `"}`)
		if got.status != row.status || fmt.Sprint(g.forgot) != row.forgot || !strings.Contains(got.Note+got.Error, row.text) || strings.Contains(got.Error, "10.0.0.1") || asked != (live.Action{Name: "forget", Limiter: "site", Key: row.key}) {
			t.Errorf("%+v: %+v, %v, asked %+v", row, got, g.forgot, asked)
		}
	}
}

// moody is a store that does nothing for a context that has ended and may fail, or one that
// processes share and that cannot block.
type moody struct {
	core.Store
	err      error
	noBlocks bool
}

func (m *moody) Guarantees() core.Guarantees {
	g := m.Store.Guarantees()
	g.Shared = m.noBlocks
	return g
}

func (m *moody) Open(name string, rules []core.StoreRule) (core.Counters, error) {
	c, err := m.Store.Open(name, rules)
	return moodyCounters{c, m}, err
}

type moodyCounters struct {
	core.Counters
	store *moody
}

func (c moodyCounters) Do(ctx context.Context, b *core.Batch) error {
	if c.store.noBlocks && b.Op == core.OpBlock {
		return core.ErrUnsupported
	}
	if err := errors.Join(ctx.Err(), c.store.err); err != nil {
		return err
	}
	return c.Counters.Do(ctx, b)
}

// The log has the error of the store, and the browser does not. An operator is told what the
// store cannot do, and what was begun is done although the browser has gone.
func TestOrdersThatTheStoreDoesNotDo(t *testing.T) {
	store := &moody{Store: core.Must(core.NewMemory(core.MemoryConfig{})), noBlocks: true}
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	if l := s.see().Limiters[0]; !l.Managed || !l.Shared {
		t.Errorf("%+v, want a shared store", l)
	}
	if got := s.post(order("ban", "alice")); got.status != http.StatusNotImplemented || !strings.Contains(got.Error, "cannot do that") {
		t.Errorf("%+v", got)
	}
	s.take(4, "alice")
	if got := s.post(order("unblock", "alice")); got.status != http.StatusOK || !s.allows("alice") {
		t.Errorf("%+v", got)
	}
	store.err = errors.New("the disk is full")
	const failed = `level=ERROR msg="live: the store failed" error="the disk is full"` + "\n"
	for do, want := range map[string]string{
		"look":    failed,
		"unblock": `level=ERROR msg="live: an action failed" action=unblock limiter=api rule=user key=alice who=olga from=192.0.2.1:1234 error="the disk is full"` + "\n" + failed,
	} {
		s.log.Reset()
		if got := s.post(order(do, "alice")); got.status != http.StatusServiceUnavailable || strings.Contains(got.Error, "disk") || s.lines() != want {
			t.Errorf("%s: %+v, the log is %s", do, got, s.lines())
		}
	}
}

// While the store is away, the page says that it shows the counters of this process, and that an
// order is done in this process only. It is no failure, and the log says so.
func TestOrdersWhileTheStoreIsAway(t *testing.T) {
	inner := &moody{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	store := core.Must(resilient.New(inner, resilient.Config{Log: slog.New(slog.DiscardHandler)}))
	defer func() { _ = store.Close() }()
	s := newSite(t, live.Config{Authorize: mayChange("olga")}, core.Config{Store: store})
	s.take(2, "alice")
	if got := s.post(order("look", "alice")); got.Note != "" || got.Limits[0].Remaining != 1 || got.Limits[0].Exceeded {
		t.Errorf("%+v", got)
	}
	inner.err = errors.New("connection refused")
	for _, row := range []struct {
		do, note  string
		remaining int64
	}{
		{"look", "these are the counters of this process", 1}, {"ban", "only this process", 0},
		{"unblock", "only this process", 3},
	} {
		s.log.Reset()
		got := s.post(order(row.do, "alice"))
		if got.status != http.StatusOK || got.Error != "" || !strings.Contains(got.Note, row.note) || len(got.Limits) != 1 || got.Limits[0].Remaining != row.remaining {
			t.Errorf("%s: %+v", row.do, got)
		}
		log, line := s.lines(), `level=WARN msg="live: an action was done in this process only" action=`+row.do+" limiter=api rule=user key=alice who=olga from=192.0.2.1:1234 "
		if strings.HasPrefix(log, line) != (row.do != "look") || strings.Count(log, "\n") != strings.Count(log, "connection refused") {
			t.Errorf("%s: the log has %q", row.do, log)
		}
	}
}
