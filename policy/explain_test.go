package policy_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

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
			for _, rule := range p.Rules {
				fmt.Fprintf(&b, " [%s tier=%q %t %q key=%q %d]", rule.Rule, rule.Tier, rule.Applies, rule.Why, rule.Key, len(rule.Limits))
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	got := text(&explained{address: "10.0.0.1:5", query: url.Values{"plan": {"staff"}}})
	want := `tiered true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> [tiered tier="staff" false "the tier is unlimited" key="" 0]
keyed true "the policy has no match conditions" dry_run=true denied=false cost=2 err=rule keyed: floodgate: bad request: the query parameter "id" is missing [keyed tier="" false "floodgate: bad request: the query parameter \"id\" is missing" key="" 1]
skips true "the policy has no match conditions" dry_run=false denied=true cost=1 err=<nil> [skips tier="" false "the request has no query[\"id\"]" key="" 1]
kept-out true "the policy has no match conditions" dry_run=false denied=true cost=1 err=<nil> [kept-out tier="" true "" key="" 1]
kept-off false "the address is in the list exempt" dry_run=false denied=false cost=1 err=<nil>
`
	if got != want {
		t.Errorf("says:\n%swant:\n%s", got, want)
	}
	got = text(&explained{address: "192.0.2.1:5", query: url.Values{"id": {"abc"}}})
	want = `tiered true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> [tiered tier="default" true "" key="192.0.2.1" 1]
keyed true "the policy has no match conditions" dry_run=true denied=false cost=5 err=<nil> [keyed tier="" true "" key="abc" 1]
skips true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> [skips tier="" true "" key="abc" 1]
kept-out true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> [kept-out tier="" true "" key="" 1]
kept-off true "the policy has no match conditions" dry_run=false denied=false cost=1 err=<nil> [kept-off tier="" true "" key="" 1]
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
  - name: a
    cost: int(query["n"])
    rules:
      - {name: one, key: 'query["x"]', missing: reject, limits: 5/m}
      - {name: two, key: 'query["y"]', missing: reject, limits: 5/m}
`)
	for query, want := range map[string]string{"n=1": "rule one: ", "n=1&x=a": "rule two: ", "n=few": "int(few)"} {
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
