package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
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
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {ann: 5/m, bob: unlimited, kim: 3/m, out: 0/m, "?": 4/m}}]`)
	for key, want := range map[string]int{"ann": 5, "bob": 9, "kim": 3, "out": 0, "?": 4, "": 2, "eve": 2, "ANN": 2, "unlimited": 2, "*": 2} {
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
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', fallback: ip, limits: 1/m, quotas: {10.0.0.1: 2/m, "?:10.0.0.2": 3/m, "??:10.0.0.3": 4/m}}]`)
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
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: [1/m fixed_window, 8/h fixed_window], quotas: {bob: 2/m}}, {name: b, tiers: {default: 99/h}, tier: method}]`, policy.WithQuota(quota))
	for _, c := range []struct {
		key, plan string
		want      int
	}{{"ann", "", 1}, {"kim", "paid", 4}, {"bob", "paid", 2}, {"eve", "free", 9}, {"bob", "free", 0}} {
		if got := s.passes(9, c.key, header("X-Plan", c.plan)); got != c.want {
			t.Errorf("%s with the plan %q: %d pass, want %d", c.key, c.plan, got, c.want)
		}
	}
	s.expect(400, "GET", "/", header("X-Key", "x"), header("X-Plan", "bad"))
	if strings.Join(rules, " ") != "a b-default" {
		t.Errorf("asks for the rules %q", rules)
	}
}

// Somebody may ask the limiter, and not the Set.
func TestTheLimiterKnowsTheQuotasOfKeys(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', match: {paths: [/]}, limits: 2/m fixed_window, quotas: {ann: 4/m, bob: unlimited}}]`)
	s.mount(limiterOnly{s.set.Limiter()})
	for key, want := range map[string]int{"ann": 4, "bob": 9, "eve": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass, want %d", key, got, want)
		}
	}
}

type limiterOnly struct{ core.Checker }

// A hit without a request has the quotas of its key.
func TestHitsOfARule(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, key: ip, limits: [2/m, 9/h], quotas: {ann: 5/m, bob: unlimited}, deny: [10.0.0.1]}
  - {name: b, key: ip, limits: 2/m}
  - {name: c, key: ip, tier: user, tiers: {default: 1/m, paid: [1/s, 3/m], staff: unlimited}, quotas: {ann: 5/m}}
`, policy.WithUser(func(core.Request) string { return "" }))
	got := map[string][]int64{}
	s.set.Policies()[0].Rules[0].Limits[1].Quota = 99 // the caller's copy
	for _, p := range s.set.Policies() {
		for _, r := range p.Rules {
			for _, key := range []string{"ann", "bob", "eve"} {
				hit := r.Hit(key)
				if _, err := s.set.Limiter().Take(t.Context(), 1, hit); err != nil || hit.Key != key {
					t.Errorf("%+v: %v", hit, err)
				}
				if hit.Quotas != nil {
					got[hit.Rule+" "+key] = hit.Quotas
				}
			}
		}
	}
	want := map[string][]int64{"a ann": {5, 9}, "a bob": {core.Unlimited, core.Unlimited}, "c-default ann": {5}, "c-paid ann": {1, 5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("quotas %v, want %v", got, want)
	}
}

func TestExplanationsOfQuotas(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'query["k"]', missing: skip, limits: [2/m token_bucket burst=4, 9/h], quotas: {ann: 50/m, bob: unlimited, out: 0/m}}]`,
		policy.WithQuota(func(r core.Request, rule string, l core.Limit) (int64, bool, error) {
			if r.Path() == "/bad" {
				return 0, false, core.ErrBadRequest
			}
			return 7, r.Path() == "/seven" && rule == "a" && l.Window == time.Hour, nil
		}))
	for target, want := range map[string]string{
		"/?k=ann":      "50 100 9",
		"/?k=bob":      fmt.Sprint(core.Unlimited, 4, core.Unlimited),
		"/?k=out":      "0 1 9",
		"/seven?k=eve": "2 4 7",
		"/?k=eve":      "2 4 9",
	} {
		e := s.set.Explain(get(target))[0]
		if got := fmt.Sprint(e.Limits[0].Quota, e.Limits[0].Burst, e.Limits[1].Quota); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	if e := s.set.Explain(get("/bad?k=eve"))[0]; !errors.Is(e.Err, core.ErrBadRequest) {
		t.Errorf("a quota that is an error: %+v", e)
	}
}

func TestExplanations(t *testing.T) {
	const preflight = "a CORS preflight is not limited"
	counter := new(hooktest.Counter)
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
  - {name: kept-out, limits: 0/m token_bucket burst=4, only: [192.0.2.0/24]}
  - {name: kept-off, limits: 1/m, exempt: [10.0.0.0/8]}
  - {name: write, limits: 1/m, match: {methods: [PUT, POST]}, exempt: [10.0.0.0/8]}
  - {name: once, limits: 1/m, match: {when: 'path == "/y"'}}
  - {name: slots, in-flight: 3, tier: 'query["plan"]', tiers: {default: 1/m, staff: unlimited}, key: 'query["id"]', missing: skip, match: {paths: [/]}}
`, policy.WithObserver(counter))
	told := func(e policy.Explanation) string {
		switch {
		case !e.Applies:
			return e.Why
		case e.Denied:
			return fmt.Sprint("403, cost ", e.Cost)
		case e.Err != nil:
			return "400 " + e.Err.Error()
		case e.InFlight != nil:
			return fmt.Sprintf("%d in flight, %s, tier %q, key %q, %d limits", *e.InFlight, e.Why, e.Tier, e.Key, len(e.Limits))
		}
		return fmt.Sprintf("cost %d, tier %q, key %q, %d limits", e.Cost, e.Tier, e.Key, len(e.Limits))
	}
	for target, want := range map[string][]string{
		"GET 10.0.0.1 /?plan=staff":          {"the tier is unlimited", `400 floodgate: bad request: the query parameter "id" is missing`, "403, cost 1", "403, cost 1", "the address is in the list exempt", "the method is none of PUT, POST", `its condition when is false: path == "/y"`, `the request has no query["id"]`},
		"GET 192.0.2.1 /?id=abc":             {`cost 1, tier "default", key "192.0.2.1", 1 limits`, `cost 5, tier "", key "abc", 1 limits`, `cost 1, tier "", key "abc", 1 limits`, `cost 1, tier "", key "", 1 limits`, `cost 1, tier "", key "", 1 limits`, "the method is none of PUT, POST", `its condition when is false: path == "/y"`, `3 in flight, the request meets all conditions of match, tier "default", key "abc", 1 limits`},
		"OPTIONS 10.0.0.1 /?plan=staff&id=a": {preflight, preflight, "403, cost 1", "403, cost 1", preflight, "the method is none of PUT, POST", `its condition when is false: path == "/y"`, preflight},
		"PUT 192.0.2.1 /?plan=staff&id=a":    {"the tier is unlimited", `cost 3, tier "", key "a", 1 limits`, `cost 1, tier "", key "a", 1 limits`, `cost 1, tier "", key "", 1 limits`, `cost 1, tier "", key "", 1 limits`, `cost 1, tier "", key "", 1 limits`, `its condition when is false: path == "/y"`, `3 in flight, the request meets all conditions of match, tier "staff", key "a", 0 limits`},
	} {
		sent := strings.Fields(target)
		all := s.set.Explain(floodgatetest.NewRequest(sent[0], sent[2], floodgatetest.From(sent[1]+":5"), floodgatetest.Header("Access-Control-Request-Method", "PUT")))
		for i, e := range all {
			if got := told(e); got != want[i] {
				t.Errorf("%s, %s: %s, want %s", target, e.Policy, got, want[i])
			}
		}
	}
	if n := counter.Read(); n != (hooktest.Numbers{}) {
		t.Errorf("an explanation is observed as a decision: %+v", n)
	}
}

// Of several mistakes of a request, the explanation names the one that it is denied for: the first.
func TestAnExplanationNamesTheFirstMistake(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, cost: 'int(query["n"])', key: 'query["x"]', missing: reject, limits: 5/m}
  - {name: b, tier: 'query["n"] == "1" ? "" : string(int(query["n"]))', tiers: {default: 5/m}}
`)
	for query, want := range map[string]string{"n=1": `"x" is missing`, "n=few": "int(few)"} {
		all := s.set.Explain(get("/?" + query))
		if got := all[0].Err; got == nil || !strings.Contains(got.Error(), want) || (all[1].Err != nil) != (query == "n=few") {
			t.Errorf("%s: %v, want %q; of the tier: %v", query, got, want, all[1].Err)
		}
	}
}
