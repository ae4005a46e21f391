package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/policy"
)

// passes counts the requests of a key that are allowed, of so many.
func (s *site) passes(of int, key string, opts ...option) (n int) {
	for range of {
		if s.send("GET", "/", append(opts, header("X-Key", key))...).Code == http.StatusOK {
			n++
		}
	}
	return n
}

func TestQuotasOfSingleKeys(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {ann: 5, bob: unlimited, kim: 3/m, out: 0}}]`)
	for key, want := range map[string]int{"ann": 5, "bob": 9, "kim": 3, "out": 0, "": 2, "eve": 2, "ANN": 2, "unlimited": 2, "*": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%q: %d pass, want %d", key, got, want)
		}
	}
	s.pass(time.Minute)
	if got := s.passes(9, "ann"); got != 5 {
		t.Errorf("in the next minute %d pass, want 5", got)
	}
}

func TestQuotasNameLimitsByTheirWindows(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: [2/m fixed_window, 4/h fixed_window], quotas: {minute: 3/m, hour: 1/h, both: '4/m, 5/60m', free: unlimited}}]`)
	for key, want := range map[string]int{"minute": 3, "hour": 1, "both": 4, "free": 9, "other": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass, want %d", key, got, want)
		}
	}
	s.pass(time.Minute)
	for key, want := range map[string]int{"minute": 1, "hour": 0, "both": 1, "free": 9, "other": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass in the second minute, want %d", key, got, want)
		}
	}
}

// Keys of the fallback are others than those of the key: a client cannot take
// the quota of an address by its name.
func TestQuotasOfKeysWithAFallback(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', fallback: ip, limits: 1/m, quotas: {10.0.0.1: 2, "?:10.0.0.2": 3, "??:10.0.0.3": 4}}]`)
	for _, c := range []struct {
		address, key string
		want         int
	}{{"10.0.0.1", "", 1}, {"10.0.0.2", "", 3}, {"10.9.9.9", "10.0.0.1", 2}, {"10.9.9.9", "?:10.0.0.2", 1}, {"10.9.9.9", "?:10.0.0.3", 4}, {"10.0.0.3", "", 1}} {
		if got := s.passes(9, c.key, from(c.address)); got != c.want {
			t.Errorf("%q from %s: %d pass, want %d", c.key, c.address, got, c.want)
		}
	}
}

func TestQuotasForTiers(t *testing.T) {
	s := newSite(t, `
trusted-headers: [X-Plan]
policies:
  - name: a
    key: header["x-key"]
    missing: own-bucket
    tier: header["x-plan"]
    tiers: {default: 1/m, paid: [3/m fixed_window, 4/h fixed_window], staff: unlimited}
    quotas: {ann: 2/m, bob: '5/m, 6/h', kim: 7/h}
`)
	for _, c := range []struct {
		plan, key string
		want      int
	}{{"", "ann", 2}, {"", "bob", 5}, {"", "kim", 1}, {"paid", "ann", 2}, {"paid", "bob", 5}, {"paid", "kim", 3}, {"staff", "ann", 9}, {"paid", "eve", 3}} {
		if got := s.passes(9, c.key, header("X-Plan", c.plan)); got != c.want {
			t.Errorf("%s, tier %q: %d pass, want %d", c.key, c.plan, got, c.want)
		}
	}
}

// The program gives quotas to requests; a key that the file has a quota for keeps it.
func TestQuotasOfTheProgram(t *testing.T) {
	var rules []string
	quota := func(r core.Request, rule string, l core.Limit) (int64, bool, error) {
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
		switch plan := strings.Join(r.HeaderValues("X-Plan"), ""); {
		case plan == "paid" && l.Window == time.Minute:
			return 4, true, nil
		case plan == "bad":
			return 0, false, fmt.Errorf("%w: no such plan", core.ErrBadRequest)
		case plan == "free":
			return core.Unlimited, true, nil
		}
		return -1, false, nil
	}
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: [1/m fixed_window, 8/h fixed_window], quotas: {bob: 2/m}}]`, policy.WithQuota(quota))
	for _, c := range []struct {
		key, plan string
		want      int
	}{{"ann", "", 1}, {"kim", "paid", 4}, {"bob", "paid", 2}, {"eve", "free", 9}, {"bob", "free", 0}} {
		if got := s.passes(9, c.key, header("X-Plan", c.plan)); got != c.want {
			t.Errorf("%s with the plan %q: %d pass, want %d", c.key, c.plan, got, c.want)
		}
	}
	s.expect(400, "GET", "/", header("X-Key", "x"), header("X-Plan", "bad"))
	if len(rules) != 1 || rules[0] != "a" {
		t.Errorf("asks for the rules %q", rules)
	}
}

func TestTheQuotaOfAKeyChanges(t *testing.T) {
	const text = `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {ann: 4}}]`
	s := newSite(t, text)
	if got := s.passes(9, "ann"); got != 4 {
		t.Errorf("%d pass, want 4", got)
	}
	s.replace(strings.Replace(text, "ann: 4", "ann: 6", 1)) // what has been counted stays
	if got := s.passes(9, "ann"); got != 2 {
		t.Errorf("%d pass, want 2 more", got)
	}
}

// Somebody may ask the limiter, and not the Set.
func TestTheLimiterKnowsTheQuotasOfKeys(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {ann: 4, bob: unlimited}}]`)
	s.mount(limiterOnly{s.set.Limiter()})
	for key, want := range map[string]int{"ann": 4, "bob": 9, "eve": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass, want %d", key, got, want)
		}
	}
}

type limiterOnly struct{ core.Checker }

func TestQuotasOfAKey(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, key: ip, limits: [2/m, 9/h], quotas: {ann: 5/m, bob: unlimited}, deny: [10.0.0.1]}
  - {name: b, key: ip, limits: 2/m}
  - {name: c, key: ip, tier: user, tiers: {default: 1/m, paid: [1/s, 3/m]}, quotas: {ann: 5/m}}
`, policy.WithUser(func(core.Request) string { return "" }))
	for _, c := range []struct {
		rule, key string
		want      []int64
	}{
		{"a", "ann", []int64{5, 9}}, {"a", "bob", []int64{core.Unlimited, core.Unlimited}}, {"a", "eve", nil}, {"a.deny-list", "ann", nil}, {"b", "ann", nil},
		{"c-default", "ann", []int64{5}}, {"c-paid", "ann", []int64{1, 5}},
	} {
		got, err := s.set.QuotasOf(c.rule, c.key)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %v, %v, want %v", c.rule, c.key, got, err, c.want)
		}
		if _, err := s.set.Limiter().Take(t.Context(), 1, core.Hit{Rule: c.rule, Key: c.key, Quotas: got}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.set.QuotasOf("none", "ann"); !errors.Is(err, core.ErrUnknownRule) {
		t.Error(err)
	}
}

func TestExplanationsOfQuotas(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'query["k"]', missing: skip, limits: [2/m token_bucket burst=4, 9/h], quotas: {ann: 50/m, bob: unlimited}}]`,
		policy.WithQuota(func(r core.Request, _ string, l core.Limit) (int64, bool, error) {
			return 7, r.Method() == "PUT" && l.Window == time.Hour, nil
		}))
	for request, want := range map[string]string{
		"GET /?k=ann": "[50 per 1m (token_bucket, burst 100) 9 per 1h] the field quotas",
		"GET /?k=bob": "[unlimited] the field quotas",
		"PUT /?k=eve": "[2 per 1m (token_bucket, burst 4) 7 per 1h] the program",
		"GET /?k=eve": "[2 per 1m (token_bucket, burst 4) 9 per 1h] ",
	} {
		method, target, _ := strings.Cut(request, " ")
		got := ""
		explain := hooktest.Funcs{ShouldLimitFunc: func(r core.Request) bool {
			e := s.set.Explain(r)[0]
			got = fmt.Sprint(e.Limits, " ", e.QuotasFrom)
			if q := e.Limits; q[0].Quota == core.Unlimited && q[1].Quota == core.Unlimited {
				got = "[unlimited] " + e.QuotasFrom
			}
			return false
		}}
		s.handler = httplimit.Middleware(core.Must(core.New(core.Config{Rules: []core.Rule{{Limits: []core.Limit{core.PerSecond(1)}}}, Hooks: explain})))(http.NotFoundHandler())
		s.send(method, target)
		if got != want {
			t.Errorf("%s: %s\nwant %s", request, got, want)
		}
	}
}

func TestExplanations(t *testing.T) {
	s := newSite(t, `
policies:
  - name: tiered
    tier: query["plan"]
    tiers: {default: 1/m, staff: unlimited}
    key: ip
  - name: keyed
    key: query["id"]
    missing: reject
    limits: 1/m
    cost: len(query["id"]) + 2
    dry-run: true
  - name: skips
    key: query["id"]
    missing: skip
    limits: 1/m
    deny: [10.0.0.1]
  - {name: kept-out, limits: 1/m, only: [192.0.2.0/24]}
  - {name: kept-off, limits: 1/m, exempt: [10.0.0.0/8]}
`)
	text := func(r *explained) string {
		var b strings.Builder
		for _, p := range s.set.Explain(r) {
			fmt.Fprintf(&b, "%s %t %q dry_run=%t denied=%t cost=%d err=%v", p.Policy, p.Applies, p.Why, p.DryRun, p.Denied, p.Cost, p.Err)
			fmt.Fprintf(&b, " tier=%q key=%q %d\n", p.Tier, p.Key, len(p.Limits))
		}
		return b.String()
	}
	got := text(&explained{address: "10.0.0.1:5", query: url.Values{"plan": {"staff"}}})
	want := `tiered false "the tier is unlimited" dry_run=false denied=false cost=1 err=<nil> tier="staff" key="" 0
keyed true "the policy has no match conditions" dry_run=true denied=false cost=2 err=floodgate: bad request: the query parameter "id" is missing tier="" key="" 0
skips true "the policy has no match conditions" dry_run=false denied=true cost=1 err=<nil> tier="" key="" 0
kept-out true "the policy has no match conditions" dry_run=false denied=true cost=1 err=<nil> tier="" key="" 1
kept-off false "the address is in the list exempt" dry_run=false denied=false cost=1 err=<nil> tier="" key="" 0
`
	if got != want {
		t.Errorf("says:\n%swant:\n%s", got, want)
	}
	got = text(&explained{address: "192.0.2.1:5", query: url.Values{"id": {"abc"}}})
	want = `tiered true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> tier="default" key="192.0.2.1" 1
keyed true "the policy has no match conditions" dry_run=true denied=false cost=5 err=<nil> tier="" key="abc" 1
skips true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> tier="" key="abc" 1
kept-out true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> tier="" key="" 1
kept-off true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> tier="" key="" 1
`
	if got != want {
		t.Errorf("says:\n%swant:\n%s", got, want)
	}
	if st := s.set.Limiter().Stats(); st != (core.Stats{}) {
		t.Errorf("an explanation counts: %+v", st)
	}
}

// A CORS preflight is not limited, whatever its address.
func TestThePreflightOfAnExemptAddressIsExplainedAsAPreflight(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/h, exempt: [10.0.0.0/8]}]")
	preflight := http.Header{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"PUT"}}
	for method, want := range map[string]string{"OPTIONS": "a CORS preflight is not limited", "GET": "the address is in the list exempt"} {
		if got := s.set.Explain(&explained{method: method, address: "10.0.0.1:5", header: preflight})[0]; got.Applies || got.Why != want {
			t.Errorf("%s: applies %t, %q: want %q", method, got.Applies, got.Why, want)
		}
	}
}

// Of several mistakes of a request, the explanation names the one that it is denied for: the first.
func TestAnExplanationNamesTheFirstMistake(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, cost: 'int(query["n"])', key: 'query["x"]', missing: reject, limits: 5/m}
`)
	for query, want := range map[string]string{"n=1": `"x" is missing`, "n=few": "int(few)"} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.set.Explain(&explained{query: q})[0].Err; got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: %v, want %q", query, got, want)
		}
	}
}

func TestWordsOfTheCalendar(t *testing.T) {
	for text, want := range map[string]string{
		"9/day Asia/Kathmandu": "at most 9 in each day of the calendar in Asia/Kathmandu",
		"9/week UTC":           "at most 9 in each week, from Monday, of the calendar in UTC",
		"9/month":              "at most 9 in each month of the calendar in UTC",
		"0/month":              "none at all",
	} {
		if got := policy.Words(core.Must(core.ParseLimits(text))[0]); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestWordsOfACalendarWithoutALimit(t *testing.T) {
	l := core.PerMonth(core.Unlimited).In(time.UTC)
	if got, want := policy.Words(l), "without a limit, counted in each month of the calendar in UTC"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
