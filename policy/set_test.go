package policy_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/hooktest"
	"github.com/floodgate-go/floodgate/policy"
)

// A policy with dry-run: true denies nothing, charges nothing to the others, and is
// marked in the reports. It gets the requests that the others allow.
func TestADryRunIsOnlyReported(t *testing.T) {
	var reports []string
	report := func(_ core.Request, d core.Decision, denial core.Denial) core.Denial {
		reports = append(reports, d.Rule()+" "+map[bool]string{true: "would deny", false: "denies"}[d.DryRun])
		return denial
	}
	const file = `
policies:
  - {name: real, limits: 3/m, headers: draft-10}
  - {name: planned, limits: 1/m, dry-run: true, headers: draft-10, match: {methods: [GET]}}
`
	counter := new(hooktest.Counter)
	s := newSite(t, file, policy.OnDisallowed(report), policy.WithObserver(counter))
	for i := range 3 {
		w := s.expect(200, "GET", "/")
		if got := w.Header().Values("Ratelimit"); len(got) != 1 {
			t.Errorf("request %d: RateLimit is %q", i, got)
		}
	}
	s.expect(429, "GET", "/")
	if got := strings.Join(reports, ", "); got != "planned would deny, planned would deny, real denies" {
		t.Errorf("reported: %s", got)
	}
	if n := counter.Read(); n != (hooktest.Numbers{Allowed: 4, Denied: 1, DryRun: 2}) { // of both limiters
		t.Errorf("observed: %+v", n)
	}
	if d, err := s.set.DryRun().Peek(t.Context(), 1, core.Hit{Rule: "planned"}); err != nil || d.Remaining != 0 || s.set.DryRun().Name() != "policies-dry-run" {
		t.Errorf("of the dry run: %v, %v", d, err)
	}
	planned, err := s.set.Only("planned")
	must(t, err)
	s.mount(planned)
	if got := s.expect(200, "GET", "/").Header().Values("Ratelimit"); got != nil {
		t.Errorf("by itself the dry run writes headers: %q", got)
	}
	s.mount(s.set)
	// It is put in force, and counts anew.
	s.replace(strings.Replace(file, "dry-run: true", "dry-run: false", 1))
	s.expect(429, "POST", "/")
	s.pass(2 * time.Minute)
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	if s.set.DryRun() != nil {
		t.Error("there is a dry run of no policy")
	}
}

// The hook gets the answer of the file and may change it. It is asked about an address of the list deny too, and a
// request that is at fault is answered with 400, not as the file says that denied ones are.
func TestTheHookSeesEveryDenial(t *testing.T) {
	var given []int
	s := newSite(t, `
policies:
  - {name: a, limits: 5/m, deny: [10.0.0.1], on-denied: {status: 503, body: slow down}}
  - {name: b, limits: 5/m, key: 'header["X-Id"]', missing: reject, on-denied: {status: 503, body: slow down}}
  - {name: c, limits: 0/m, match: {paths: [/c]}, on-denied: {body: slow down}}
`, policy.OnDisallowed(func(_ core.Request, _ core.Decision, d core.Denial) core.Denial {
		given = append(given, d.Status)
		if d.Status != 400 {
			d.Status = 418
		}
		return d
	}))
	s.expect(418, "GET", "/", from("10.0.0.1"))
	if w := s.expect(400, "GET", "/", from("10.0.0.2")); strings.Contains(w.Body.String(), "slow down") {
		t.Errorf("%s", w.Body)
	}
	s.expect(418, "GET", "/c", from("10.0.0.2"), header("X-Id", "x"))
	if !slices.Equal(given, []int{403, 400, 429}) {
		t.Errorf("the hook is given %v", given)
	}
}

func TestCosts(t *testing.T) {
	s := newSite(t, `policies: [{name: a, limits: 10/m fixed_window, cost: 'method == "POST" ? 5 : int(query["n"])'}]`)
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

func TestTiersByAFunction(t *testing.T) {
	type key struct{}
	plan := func(name string) option {
		return func(r *http.Request) { *r = *r.WithContext(context.WithValue(r.Context(), key{}, name)) }
	}
	s := newSite(t, `policies: [{name: api, key: ip, tiers: {default: 1/m, staff: unlimited}}]`, policy.WithTier(func(r core.Request) (string, error) {
		switch name := r.Value(key{}).(string); name {
		case "broken":
			return "", errors.New("the database is gone")
		case "bad":
			return "", core.ErrBadRequest
		default:
			return name, nil
		}
	}))
	s.expect(200, "GET", "/", plan("staff"))
	s.expect(200, "GET", "/", plan("staff"))
	s.expect(200, "GET", "/", plan("free"))
	s.expect(429, "GET", "/", plan("free"))
	s.expect(503, "GET", "/", plan("broken"))
	s.expect(400, "GET", "/", plan("bad"))
	newSite(t, `policies: [{name: a, tier: 'int(query["n"]) > 5 ? "paid" : "free"', tiers: {default: 1/m}}]`).expect(400, "GET", "/?n=x")
}

func TestNilArgumentsAreNamed(t *testing.T) {
	var memory *core.Memory
	for want, option := range map[string]policy.Option{
		"policy: an option is nil: write one such as policy.Log(log), or none": nil,
		"policy: WithStore: ": policy.WithStore(memory),
	} {
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/h}]"), option)
		if set != nil || !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// observer keeps what it is told of.
type observer struct {
	configurations []string
	decided        []string
}

func (o *observer) Observe(limiter string, rules []core.Rule) core.ObserverFuncs {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	o.configurations = append(o.configurations, limiter+": "+strings.Join(names, " "))
	return core.ObserverFuncs{Decided: func(_ context.Context, d core.Decision, rule, _ int) {
		name := ""
		if rule >= 0 {
			name = rules[rule].Name
		}
		o.decided = append(o.decided, name+" "+d.Reason.String())
	}}
}

// The observer is told of each file that is put in force, and not of one that is not.
func TestObserver(t *testing.T) {
	o := new(observer)
	text := func(names ...string) []byte {
		file := "name: site\npolicies:\n"
		for _, n := range names {
			file += "  - name: " + n + "\n    limits: [1/m]\n    key: ip\n"
		}
		return []byte(file)
	}
	s := core.Must(policy.Parse("p.yaml", text("a"), policy.WithObserver(o)))
	defer func() { _ = s.Close() }()
	take := func(rule string) { _, _ = s.Limiter().Take(t.Context(), 1, core.Hit{Rule: rule, Key: "k"}) }
	take("a")
	if err := s.Replace(text("b", "b")); err == nil {
		t.Error("two policies have one name")
	}
	must(t, s.Replace(text("b", "a")))
	take("a")
	take("b")
	must(t, s.Replace([]byte("{name: site, policies: [{name: c, in-flight: 1}]}")))
	s.Check(get("/"))
	if got := strings.Join(o.configurations, "; "); got != "site: a; site: b a; site: none; site.c: site.c" {
		t.Errorf("configurations: %s", got)
	}
	if got := strings.Join(o.decided, "; "); got != "a within limits; a over limit; b within limits; site.c within limits;  no rule" {
		t.Errorf("decisions: %s", got)
	}
}

func TestAPolicyLogsWhatFails(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, "policies: [{name: api, tiers: {default: 5/m, gold: 9/m}}]",
		policy.WithTier(func(core.Request) (string, error) { return "", errors.New("the database is gone") }),
		policy.Log(slog.New(slog.NewTextHandler(&log, nil))))
	for range 10 {
		s.send("GET", "/")
	}
	if strings.Count(log.String(), "a function of a rule failed") != 1 || !strings.Contains(log.String(), "limiter=policies") || !strings.Contains(log.String(), "rule=api-default") || !strings.Contains(log.String(), "the database is gone") {
		t.Errorf("logged: %s", &log)
	}
}

func TestANilLogIsTheDefault(t *testing.T) {
	var log bytes.Buffer
	standard := slog.Default()
	t.Cleanup(func() { slog.SetDefault(standard) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	set := core.Must(policy.Parse("f", []byte("policies: [{name: a, key: route, limits: 1/h, deny: [10.0.0.1]}]"), policy.Log(nil)))
	for range 1000 {
		set.Check(get("/", floodgatetest.Route("/")))
	}
	if !strings.Contains(log.String(), "probably a mistake") || strings.Contains(log.String(), "limits nobody") {
		t.Errorf("logged: %s", &log)
	}
	must(t, set.Close())
}
