package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

func TestAPolicyIsForWhatItsMatchSays(t *testing.T) {
	s := newSite(t, `
policies:
  - name: api
    limits: 0/s
    match: {methods: [GET, DELETE], paths: [/users/*, "/items/{id}/parts", "/docs/:page", /files/**], when: 'query["free"] == ""'}
`)
	for target, limited := range map[string]bool{
		"GET /users/5": true, "HEAD /users/5": true, "DELETE /users/5": true, "POST /users/5": false, "get /users/5": false,
		"GET /users": false, "GET /users/5/x": false, "GET /users/": false,
		"GET /users/5/": true, "GET //users//5": true, "GET /USERS/5": true, "GET /x/../users/5": true, "GET /%75sers/5": true, "GET /./users/5": true,
		"GET /items/7/parts": true, "GET /items/7": false, "GET /docs/a": true, "GET /docs/a/b": false,
		"GET /files": true, "GET /files/a/b/c": true, "GET /filesystem": false,
		"GET /users/5?free=1": false, "GET /users/5?free=": true, "GET /": false,
	} {
		method, path, _ := strings.Cut(target, " ")
		want := 200
		if limited {
			want = 429
		}
		s.expect(want, method, path)
	}
}

func TestPreflightsAreNotLimitedUnlessTheirMethodIsNamed(t *testing.T) {
	s := newSite(t, `policies: [{name: all, limits: 0/s}]`)
	s.expect(200, "OPTIONS", "/", header("Access-Control-Request-Method", "PUT"))
	s.expect(429, "OPTIONS", "/")
	s = newSite(t, `policies: [{name: all, limits: 0/s, match: {methods: [OPTIONS]}}]`)
	s.expect(429, "OPTIONS", "/", header("Access-Control-Request-Method", "PUT"))
}

// What one of several policies refuses is charged to none.
func TestPoliciesAreDecidedTogether(t *testing.T) {
	for _, order := range []string{"ab", "ba"} {
		a, b := "  - {name: wide, limits: 10/m, headers: draft-10}\n", "  - {name: narrow, key: path, limits: 2/m, headers: draft-10}\n"
		if order == "ba" {
			a, b = b, a
		}
		s := newSite(t, "policies:\n"+a+b)
		for range 2 {
			s.expect(200, "GET", "/a")
		}
		for range 20 {
			s.expect(429, "GET", "/a")
		}
		var w http.Header
		for range 8 { // all that wide has left, at 2 for each path
			w = s.expect(200, "GET", "/"+time.Duration(s.reached.Load()).String()).Header()
		}
		if got := w.Values("Ratelimit"); len(got) != 2 || !slices.Contains(got, `"wide";r=0;t=60`) || !slices.Contains(got, `"narrow";r=1;t=60`) {
			t.Errorf("%s: RateLimit is %q", order, got)
		}
		w = s.expect(429, "GET", "/new").Header()
		if got := w.Get("Retry-After"); got != "60" {
			t.Errorf("%s: Retry-After is %q", order, got)
		}
		s.expect(429, "GET", "/a") // both refuse
	}
}

func TestThreePoliciesTheLastOfWhichRefuses(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, limits: 5/m}
  - {name: b, limits: 5/m}
  - {name: c, limits: 1/m}
`)
	s.expect(200, "GET", "/")
	for range 9 {
		s.expect(429, "GET", "/")
	}
	for _, name := range []string{"a", "b"} {
		l, _ := s.set.Limiter(name)
		d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name})
		if err != nil || d.Remaining != 4 {
			t.Errorf("%s has %d left (%v), want 4", name, d.Remaining, err)
		}
	}
}

// A shadow policy refuses nothing, takes nothing from the others, and is told
// apart in what is reported.
func TestAShadowPolicyIsOnlyReported(t *testing.T) {
	var reports []string
	report := func(_ core.Request, d core.Decision, denial core.Denial) core.Denial {
		reports = append(reports, d.Limiter+" "+map[bool]string{true: "would refuse", false: "refuses"}[d.Rehearsal])
		return denial
	}
	const file = `
policies:
  - {name: real, limits: 3/m, headers: draft-10}
  - {name: planned, limits: 1/m, shadow: true, headers: draft-10, match: {methods: [GET]}}
`
	s := newSite(t, file, policy.OnDisallowed(report))
	for i := range 3 {
		w := s.expect(200, "GET", "/")
		if got := w.Header().Values("Ratelimit"); len(got) != 1 {
			t.Errorf("request %d: RateLimit is %q", i, got)
		}
	}
	s.expect(429, "GET", "/")
	if got := strings.Join(reports, ", "); got != "planned would refuse, planned would refuse, planned would refuse, real refuses" {
		t.Errorf("reported: %s", got)
	}
	l, _ := s.set.Limiter("planned")
	if st := l.Stats(); st.Allowed != 1 || st.Rehearsed != 3 || st.Denied != 0 {
		t.Errorf("stats of the shadow: %+v", st)
	}
	s.mount(l)
	if got := s.expect(200, "GET", "/").Header().Values("Ratelimit"); got != nil {
		t.Errorf("by itself the shadow writes headers: %q", got)
	}
	s.mount(s.set)
	// It is put in force, and knows what it has counted.
	s.replace(strings.Replace(file, "shadow: true", "shadow: false", 1))
	s.pass(59 * time.Second)
	s.expect(429, "GET", "/")
	s.expect(429, "POST", "/")
}

func TestOnDisallowedMayAnswerSomethingElse(t *testing.T) {
	s := newSite(t, `policies: [{name: a, limits: 0/s, on-denied: {status: 503}}]`,
		policy.OnDisallowed(func(_ core.Request, _ core.Decision, d core.Denial) core.Denial {
			if d.Status != 503 {
				t.Errorf("it is given %d, want the file's 503", d.Status)
			}
			d.Status = 418
			return d
		}))
	s.expect(418, "GET", "/")
}

func TestListsOfAddresses(t *testing.T) {
	s := newSite(t, `
client-ip: {trusted-proxies: [192.0.2.1], header: X-Forwarded-For}
policies:
  - name: api
    limits: 1/m
    cost: 0
    allow: [10.0.0.0/8, "2001:db8:1::/48"]
    deny: [10.6.6.0/24, 203.0.113.9, "2001:db8:1:2:3::/80"]
`)
	s.expect(200, "GET", "/", from("10.0.0.1"))
	s.expect(403, "GET", "/", from("10.6.6.6")) // the longer prefix
	w := s.expect(403, "GET", "/", from("203.0.113.9"))
	if !strings.Contains(w.Body.String(), "Forbidden") || w.Header().Get("Retry-After") != "" {
		t.Errorf("%q %v", w.Body, w.Header())
	}
	s.expect(200, "GET", "/", from("203.0.113.10"))
	s.expect(403, "GET", "/", from("192.0.2.1"), header("X-Forwarded-For", "203.0.113.9"))
	s.expect(200, "GET", "/", from("198.51.100.1"), header("X-Forwarded-For", "203.0.113.9")) // not from the proxy
	s.expect(200, "GET", "/", from("[2001:db8:1::5]"))
	s.expect(403, "GET", "/", from("[2001:db8:1:2:3::5]")) // addresses are not cut for lists
	s.expect(403, "GET", "/", from("[::ffff:203.0.113.9]"))
}

func TestAnAllowedAddressIsNotCounted(t *testing.T) {
	s := newSite(t, `policies: [{name: a, limits: 1/m, allow: [10.0.0.1]}]`)
	for range 3 {
		s.expect(200, "GET", "/", from("10.0.0.1"))
	}
	s.expect(200, "GET", "/", from("10.0.0.2"))
	s.expect(429, "GET", "/", from("10.0.0.2"))
}

func TestCosts(t *testing.T) {
	s := newSite(t, `policies: [{name: a, limits: 10/m, cost: 'method == "POST" ? 5 : int(query["n"])'}]`)
	s.expect(200, "POST", "/?n=x")
	s.expect(200, "GET", "/?n=3")
	s.expect(429, "POST", "/")
	s.expect(200, "GET", "/?n=2")
	s.expect(429, "GET", "/?n=1")
	s.expect(200, "GET", "/?n=0")
	s.pass(time.Minute)
	for _, n := range []string{"x", "-1", "99999999999999999999", ""} {
		s.expect(400, "GET", "/?n="+n)
	}
	s = newSite(t, `policies: [{name: a, limits: 5/m, cost: len(path) / 2}]`)
	s.expect(200, "GET", "/abcd") // 2.5 is 3
	s.expect(429, "GET", "/abcd")
	s.expect(200, "GET", "/abc")
	s = newSite(t, `policies: [{name: a, limits: 10/m, cost: 4}]`)
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
}

// A key of the body, in two policies and a match; the handler finds it whole.
func TestAFieldOfTheBody(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: user, key: 'form["user"]', missing: skip, limits: 1/m, match: {when: 'form["user"] != "root"'}}
  - {name: json, key: 'json["who.name"]', missing: skip, limits: 1/m}
  - {name: all, limits: 9/m}
`)
	const form, json = "application/x-www-form-urlencoded", "application/json"
	s.expect(200, "POST", "/", body(form, "user=a"))
	s.expect(429, "POST", "/", body(form, "user=a"))
	s.expect(200, "POST", "/", body(form, "user=b"))
	s.expect(200, "POST", "/", body(form, "user=root"))
	s.expect(200, "POST", "/", body(form, "user=root"))
	s.expect(200, "POST", "/", body(json, `{"who":{"name":"a"}}`))
	s.expect(429, "POST", "/", body(json, `{"who":{"name":"a"}}`))
	s.expect(400, "POST", "/", body(form, "user=c&user=d"))
}

const tiers = `
policies:
  - name: api
    key: header["x-user"]
    tier: header["x-plan"]
    tiers:
      default: 1/m
      paid: [3/m, 4/h]
      staff: unlimited
`

func TestTiersByAnExpression(t *testing.T) {
	s := newSite(t, tiers)
	count := func(plan, user string) (n int) {
		for range 9 {
			if s.send("GET", "/", header("X-Plan", plan), header("X-User", user)).Code == 200 {
				n++
			}
		}
		return n
	}
	for plan, want := range map[string]int{"": 1, "paid": 3, "staff": 9, "Paid": 1, "nonsense": 1} {
		if got := count(plan, plan+"-user"); got != want {
			t.Errorf("tier %q: %d pass, want %d", plan, got, want)
		}
	}
	s.pass(time.Minute)
	if got := count("paid", "paid-user"); got != 1 {
		t.Errorf("in the second minute %d pass, want 1: 4 in an hour", got)
	}
}

func TestTiersByAFunction(t *testing.T) {
	file := strings.Replace(tiers, "    tier: header[\"x-plan\"]\n", "", 1)
	s := newSite(t, file, policy.WithTier(func(r core.Request) (string, error) {
		switch name, _ := r.Query("plan"); name {
		case "broken":
			return "", errors.New("the database is gone")
		case "bad":
			return "", core.ErrBadRequest
		default:
			return name, nil
		}
	}))
	s.expect(200, "GET", "/?plan=staff")
	s.expect(200, "GET", "/?plan=staff")
	s.expect(200, "GET", "/?plan=free")
	s.expect(429, "GET", "/?plan=free")
	s.expect(503, "GET", "/?plan=broken")
	s.expect(400, "GET", "/?plan=bad")
}

func TestUsers(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: user, missing: skip, limits: 1/m}]`,
		policy.WithUser(func(r core.Request) string { u, _ := r.Query("u"); return u }))
	s.expect(200, "GET", "/?u=a")
	s.expect(429, "GET", "/?u=a")
	s.expect(200, "GET", "/?u=b")
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
}

func TestOnlyAppliesWhatItNames(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}, {name: b, limits: 2/m}]")
	if _, err := s.set.Only("c"); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("of a policy that is not there: %v", err)
	}
	if _, err := s.set.Only(); err == nil {
		t.Error("of no policy: no error")
	}
	b, err := s.set.Only("b")
	if err != nil {
		t.Fatal(err)
	}
	s.mount(b)
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.replace("policies: [{name: b, limits: 3/m}]")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	if err := s.set.Replace([]byte("policies: [{name: a, limits: 3/m}]")); err == nil || !strings.Contains(err.Error(), "the policy b is missing") {
		t.Errorf("of a file without b: %v", err)
	}
	if b.Mounts() != 1 || s.set.Mounts() != 1 {
		t.Errorf("mounts: %d and %d, want 1 and 1", b.Mounts(), s.set.Mounts())
	}
}

func TestALimiterOfItsOwn(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m, match: {methods: [GET]}, deny: [10.0.0.1], allow: [10.0.0.2]}, {name: b, limits: 5/m}]")
	l, found := s.set.Limiter("a")
	if _, none := s.set.Limiter("c"); !found || none {
		t.Fatalf("a is found: %t, c: %t", found, none)
	}
	s.mount(l)
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "POST", "/")
	s.expect(403, "GET", "/", from("10.0.0.1"))
	s.expect(200, "GET", "/", from("10.0.0.2"))
	if all := s.set.Limiters(); len(all) != 2 || all[0] != l || all[1].Name() != "b" {
		t.Errorf("limiters: %v", all)
	}
}

func TestCountsStayWhileAFileChanges(t *testing.T) {
	s := newSite(t, "policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 2/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: b, limits: 1/m, match: {methods: [PUT]}}, {name: a, key: ip, match: {methods: [GET]}, limits: 3/m}]")
	s.expect(200, "GET", "/") // raised
	s.expect(429, "GET", "/")
	s.expect(429, "PUT", "/", from("10.0.0.9")) // unchanged
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}]")
	s.expect(429, "GET", "/") // lowered
	s.expect(200, "PUT", "/", from("10.0.0.9"))
	s.replace("policies: [{name: a, key: ip, match: {methods: [GET]}, limits: 1/m}, {name: b, limits: 1/m, match: {methods: [PUT]}}]")
	s.expect(429, "PUT", "/", from("10.0.0.8")) // back, as it was
	l, _ := s.set.Limiter("a")
	if st := l.Stats(); st.Allowed != 3 || st.Denied != 3 {
		t.Errorf("stats go on over changes: %+v", st)
	}
}

func TestABrokenChangeChangesNothing(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}]")
	for _, text := range []string{"", "policies: [{name: a, limits: 5/x}]", "store: {redis: {address: 'a:1'}}\npolicies: [{name: a, limits: 5/m}]", "local: {max-keys: 5}\npolicies: [{name: a, limits: 5/m}]"} {
		if err := s.set.Replace([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	if err := s.set.Reload(); err == nil || !strings.Contains(err.Error(), "Replace") {
		t.Errorf("Reload without a file: %v", err)
	}
}

func TestAClosedSetFails(t *testing.T) {
	set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/m}]"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(set.Close(), set.Close()); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, set: set}
	s.mount(set)
	s.expect(503, "GET", "/")
	if err := set.Replace([]byte("policies: [{name: a, limits: 1/m}]")); !errors.Is(err, core.ErrClosed) {
		t.Errorf("Replace: %v", err)
	}
}

// cancelled is a request whose client has hung up.
type cancelled struct{ explained }

func (cancelled) Context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAChargeStandsWhoeverHangsUp(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 2/m}, {name: b, limits: 5/m}]")
	for i := range 4 {
		if d := s.set.Check(&cancelled{}); d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	l, _ := s.set.Limiter("b")
	if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "b"}); err != nil || d.Remaining != 3 {
		t.Errorf("b has %d left (%v), want 3", d.Remaining, err)
	}
}

// spy is a store that tells what it is asked, and may see no refusal coming.
type spy struct {
	core.Store
	blind bool
	takes map[string]int // that were to charge
}

func (s *spy) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return &spied{b, s, limiter}, err
}

type spied struct {
	core.Bound
	spy  *spy
	name string
}

func (b *spied) Take(ctx context.Context, batch *core.Batch) error {
	if !batch.Peek {
		b.spy.takes[b.name]++
	} else if b.spy.blind {
		for i := range batch.Items {
			for j := range batch.Items[i].Results {
				batch.Items[i].Results[j] = core.Result{Allowed: true, Remaining: 1}
			}
		}
		batch.Allowed = true
		return nil
	}
	return b.Bound.Take(ctx, batch)
}

// Where a refusal is foreseen nothing is charged at any time; where it is not,
// as another request came in between, what was charged is given back.
func TestWhatOnePolicyRefusesIsChargedToNone(t *testing.T) {
	for _, blind := range []bool{false, true} {
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		defer memory.Close() //nolint:errcheck // nothing depends on it
		store := &spy{Store: memory, blind: blind, takes: map[string]int{}}
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 9/h}, {name: b, limits: 9/h}, {name: c, limits: 2/h}]"), policy.WithStore(store))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if d := set.Check(&explained{}); d.Allowed != (i < 2) || !d.Allowed && d.Limiter != "c" {
				t.Errorf("blind %t, request %d: %+v", blind, i, d)
			}
		}
		want := 2
		if blind {
			want = 6
		}
		if store.takes["a"] != want {
			t.Errorf("blind %t: a was charged %d times, want %d", blind, store.takes["a"], want)
		}
		store.blind = false
		for _, name := range []string{"a", "b"} {
			l, _ := set.Limiter(name)
			if d, err := l.Peek(t.Context(), 1, core.Hit{Rule: name}); err != nil || d.Remaining != 7 {
				t.Errorf("blind %t: %s has %d left (%v), want 7", blind, name, d.Remaining, err)
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestCountingMayChangeWhereTheProgramGivesTheStore(t *testing.T) {
	const head = "store: {redis: {address: 'a:1'}}\n"
	s := newSite(t, head+"policies: [{name: a, limits: 1/m, counting: local}]")
	s.expect(200, "GET", "/")
	s.replace(head + "policies: [{name: a, limits: 1/m}]")
	s.expect(429, "GET", "/")
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
    shadow: true
  - name: skips
    key: query["id"]
    missing: skip
    limits: 1/m
    deny: [10.0.0.1]
  - {name: kept-off, limits: 1/m, allow: [10.0.0.0/8]}
`)
	text := func(r *explained) string {
		var b strings.Builder
		for _, p := range s.set.Explain(r) {
			fmt.Fprintf(&b, "%s %t %q shadow=%t denied=%t cost=%d err=%v", p.Policy, p.Applies, p.Why, p.Shadow, p.Denied, p.Cost, p.Err)
			for _, rule := range p.Rules {
				fmt.Fprintf(&b, " [%s tier=%q %t %q key=%q %d]", rule.Rule, rule.Tier, rule.Applies, rule.Why, rule.Key, len(rule.Limits))
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	got := text(&explained{address: "10.0.0.1:5", query: url.Values{"plan": {"staff"}}})
	want := `tiered true "it is for all requests" shadow=false denied=false cost=1 err=<nil> [tiered tier="staff" false "the tier is unlimited" key="" 0]
keyed true "it is for all requests" shadow=true denied=false cost=2 err=rule keyed: floodgate: bad request: there is no query["id"] [keyed tier="" false "floodgate: bad request: there is no query[\"id\"]" key="" 1]
skips true "it is for all requests" shadow=false denied=true cost=1 err=<nil> [skips tier="" false "the request has no query[\"id\"]" key="" 1]
kept-off false "the address is in the list allow" shadow=false denied=false cost=1 err=<nil>
`
	if got != want {
		t.Errorf("says:\n%swant:\n%s", got, want)
	}
	got = text(&explained{address: "192.0.2.1:5", query: url.Values{"id": {"abc"}}})
	want = `tiered true "it is for all requests" shadow=false denied=false cost=1 err=<nil> [tiered tier="default" true "" key="192.0.2.1" 1]
keyed true "it is for all requests" shadow=true denied=false cost=5 err=<nil> [keyed tier="" true "" key="abc" 1]
skips true "it is for all requests" shadow=false denied=false cost=1 err=<nil> [skips tier="" true "" key="abc" 1]
kept-off true "it is for all requests" shadow=false denied=false cost=1 err=<nil> [kept-off tier="" true "" key="" 1]
`
	if got != want {
		t.Errorf("says:\n%swant:\n%s", got, want)
	}
	l, _ := s.set.Limiter("tiered")
	if st := l.Stats(); st != (core.Stats{}) {
		t.Errorf("an explanation counts: %+v", st)
	}
}
