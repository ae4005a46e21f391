package policy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/policy"
)

// Three in ten seconds: the third request fills the quota. Further requests are
// denied and do not reach the handler. A window begins at the first request.
func TestAQuotaOfAWindow(t *testing.T) {
	s := newSite(t, `policies: [{name: api, limits: {maximumRequests: 3, timePeriodInMilliseconds: 10000}}]`)
	s.pass(3 * time.Second)
	for range 3 {
		s.expect(200, "GET", "/")
	}
	s.pass(9 * time.Second)
	w := s.expect(429, "GET", "/")
	s.expect(429, "GET", "/")
	if s.reached.Load() != 3 {
		t.Errorf("the handler saw %d requests, want 3", s.reached.Load())
	}
	if got := w.Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q, want 1", got)
	}
	if got := w.Header().Get("X-Ratelimit-Limit") + w.Header().Get("Ratelimit"); got != "" {
		t.Errorf("headers are off by default, and %q is there", got)
	}
	s.pass(time.Second)
	s.expect(200, "GET", "/")
}

// Three in 6000 ms by method, MuleSoft's example: the first request of each method begins its
// window, and Reset is the time until the next one.
func TestMuleSoftsExample(t *testing.T) {
	s := newSite(t, `policies: [{name: api, key: "#[attributes.method]", limits: {maximumRequests: 3, timePeriodInMilliseconds: 6000}, headers: x-milliseconds}]`)
	for _, row := range []struct {
		after  time.Duration // the request before
		method string
		status int
		left   string // Remaining and Reset
	}{
		{0, "GET", 200, "2 6000"},
		{time.Second, "GET", 200, "1 5000"},
		{time.Second, "POST", 200, "2 6000"},
		{0, "GET", 200, "0 4000"},
		{3999 * time.Millisecond, "GET", 429, "0 1"},
		{time.Millisecond, "POST", 200, "1 2000"},
		{100 * time.Millisecond, "GET", 200, "2 6000"},
		{0, "GET", 200, "1 6000"},
		{0, "GET", 200, "0 6000"},
		{0, "GET", 429, "0 6000"},
		{1900 * time.Millisecond, "POST", 200, "2 6000"},
	} {
		s.pass(row.after)
		h := s.expect(row.status, row.method, "/").Header()
		if got := h.Get("X-Ratelimit-Remaining") + " " + h.Get("X-Ratelimit-Reset"); got != row.left {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

func TestEachValueOfAKeyHasAQuotaAndAWindowOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct{ key, a, b string }{
		"MuleSoft's method": {`#[attributes.method]`, "GET /", "POST /"},
		"MuleSoft's query":  {`#[attributes.queryParams['identifier']]`, "GET /?identifier=a", "GET /?identifier=A"},
		"query":             {`query["id"]`, "GET /?id=a", "GET /?id=b"},
		"path":              {`path`, "GET /a", "GET /b"},
		"a joined one":      {`method + " " + path`, "GET /a", "POST /a"},
		"booleans":          {`method == "GET"`, "GET /", "PUT /"},
		"numbers":           {`len(path)`, "GET /a", "GET /ab"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, `policies: [{name: api, key: '`+strings.ReplaceAll(c.key, "'", "''")+`', limits: 3/6s fixed_window}]`)
			send := func(status int, request string) {
				t.Helper()
				method, target, _ := strings.Cut(request, " ")
				s.expect(status, method, target)
			}
			for range 3 {
				send(200, c.a)
			}
			s.pass(2 * time.Second)
			for range 3 {
				send(200, c.b)
			}
			send(429, c.a)
			s.pass(4 * time.Second) // a's window has ended, b's has not
			send(200, c.a)
			send(429, c.b)
		})
	}
}

func TestARequestWithoutTheKey(t *testing.T) {
	file := func(more string) string {
		return `policies: [{name: api, key: 'header["x-id"]', limits: 1/m` + more + `}]`
	}
	t.Run("shares a counter with all others", func(t *testing.T) {
		s := newSite(t, file(""))
		s.expect(200, "GET", "/")
		s.expect(429, "GET", "/")
		s.expect(200, "GET", "/", header("X-Id", "a"))
	})
	t.Run("is not limited", func(t *testing.T) {
		s := newSite(t, file(", missing: skip"))
		for range 3 {
			s.expect(200, "GET", "/")
		}
		s.expect(200, "GET", "/", header("X-Id", "a"))
		s.expect(429, "GET", "/", header("X-Id", "a"))
	})
	t.Run("is rejected", func(t *testing.T) {
		s := newSite(t, file(", missing: reject"))
		s.expect(200, "GET", "/", header("X-Id", "a"))
		for key, want := range map[string]string{
			`header["x-id"]`: `the header \"x-id\" is missing`, `query["id"]`: `the query parameter \"id\" is missing`,
			`header["x-id"] == "b" ? "b" : ""`: `the policy \"api\" finds no key in the request`, `user`: `the policy \"api\" finds no key in the request`,
			`header["x-plan"]`: `the policy \"api\" finds no key in the request`,
		} {
			s := newSite(t, "trusted-headers: [X-Plan]\npolicies: [{name: api, key: '"+key+"', missing: reject, limits: 1/m}]", policy.WithUser(func(core.Request) string { return "" }))
			if body := s.expect(400, "GET", "/").Body.String(); !strings.Contains(body, want) {
				t.Errorf("%s: %s, want %s", key, body, want)
			}
		}
	})
	t.Run("falls back", func(t *testing.T) {
		s := newSite(t, file(", fallback: ip"))
		s.expect(200, "GET", "/", from("10.0.0.1"))
		s.expect(429, "GET", "/", from("10.0.0.1"))
		s.expect(200, "GET", "/", from("10.0.0.2"))
		for _, id := range []string{"10.0.0.1", "?:10.0.0.1", "??:10.0.0.1", "?"} { // nobody gets at another one's
			s.expect(200, "GET", "/", header("X-Id", id))
			s.expect(429, "GET", "/", header("X-Id", id))
		}
		s.expect(200, "GET", "/", from("10.0.0.3"), header("X-Id", ""))
	})
}

// A fallback that is empty too goes the way of a key that is missing, and one that
// cannot be read is an error of the request.
func TestAFallbackThatIsEmptyOrFails(t *testing.T) {
	const text = `policies: [{name: a, key: 'query["id"]', fallback: 'form["id"]', missing: %s, limits: 1/h}]`
	s := newSite(t, fmt.Sprintf(text, "skip"))
	for range 3 {
		s.expect(200, "GET", "/")
	}
	form := func(text string) option { return body("application/x-www-form-urlencoded", text) }
	s.expect(200, "POST", "/", form("id=1"))
	s.expect(429, "POST", "/", form("id=1"))
	s.expect(400, "POST", "/", form("id=1&id=2"))
	newSite(t, fmt.Sprintf(text, "reject")).expect(400, "GET", "/")
	if e := newSite(t, fmt.Sprintf(text, "own-bucket")).set.Explain(get("/"))[0]; !e.Applies || e.Key != "" {
		t.Errorf("explained: %+v", e)
	}
}

func TestHeadersOfEachForm(t *testing.T) {
	for form, want := range map[string]map[string]string{
		"x-milliseconds": {"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "2", "X-Ratelimit-Reset": "6000"},
		"x-seconds":      {"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "2", "X-Ratelimit-Reset": "6"},
		"draft-10":       {"Ratelimit": `"api";r=2;t=6`, "Ratelimit-Policy": `"api";q=3;w=6`},
		"draft-07":       {"Ratelimit": "limit=3, remaining=2, reset=6", "Ratelimit-Policy": "3;w=6"},
		"draft-03":       {"Ratelimit-Limit": "3", "Ratelimit-Remaining": "2", "Ratelimit-Reset": "6"},
		"off":            {"Ratelimit": "", "X-Ratelimit-Limit": "", "Ratelimit-Limit": ""},
	} {
		for _, limits := range []string{"limits: 3/6s fixed_window", "tier: method, tiers: {default: 3/6s fixed_window}"} {
			h := newSite(t, "policies: [{name: api, "+limits+", headers: "+form+"}]").expect(200, "GET", "/").Header()
			for name, value := range want {
				if got := strings.ReplaceAll(h.Get(name), "api-default", "api"); got != value {
					t.Errorf("%s, %s: %s is %q, want %q", limits, form, name, got, value)
				}
			}
		}
	}
}

// Whatever a protocol wants to be told: SOAP clients know 400 and 500.
func TestTheAnswerToADeniedRequest(t *testing.T) {
	s := newSite(t, `
policies:
  - name: soap
    limits: 0/s
    match: {paths: [/soap]}
    on-denied: {status: 500, body: <fault/>, content-type: text/xml, headers: {X-Why: quota}}
  - name: plain
    limits: 0/s
    match: {paths: [/plain]}
    on-denied: {body: slow down}
  - name: status
    limits: 0/s
    match: {paths: [/status]}
    on-denied: {status: 503}
  - {name: default, limits: 0/s, match: {paths: [/default]}}
`)
	w := s.expect(500, "POST", "/soap")
	if w.Body.String() != "<fault/>" || w.Header().Get("Content-Type") != "text/xml" || w.Header().Get("X-Why") != "quota" {
		t.Errorf("soap: %q %v", w.Body, w.Header())
	}
	w = s.expect(429, "GET", "/plain")
	if w.Body.String() != "slow down" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("plain: %q %v", w.Body, w.Header())
	}
	w = s.expect(503, "GET", "/status")
	if !strings.Contains(w.Body.String(), `"status":503`) || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("status: %q %v", w.Body, w.Header())
	}
	if w = s.expect(429, "GET", "/default"); !strings.Contains(w.Body.String(), `"status":429`) {
		t.Errorf("default: %q", w.Body)
	}
}

func TestPoliciesAreDecidedTogether(t *testing.T) {
	for _, order := range []string{"ab", "ba"} {
		a, b := "  - {name: wide, limits: 10/m fixed_window, headers: draft-10}\n", "  - {name: narrow, key: path, limits: 2/m fixed_window, headers: draft-10}\n"
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
		if got := w.Values("Ratelimit"); len(got) != 1 || !strings.Contains(got[0], `"wide";r=0;t=60`) || !strings.Contains(got[0], `"narrow";r=1;t=60`) {
			t.Errorf("%s: RateLimit is %q", order, got)
		}
		w = s.expect(429, "GET", "/new").Header()
		if got := w.Get("Retry-After"); got != "60" {
			t.Errorf("%s: Retry-After is %q", order, got)
		}
		s.expect(429, "GET", "/a") // both deny
	}
}

// spy counts the operations of a store.
type spy struct {
	core.Store
	ops atomic.Int64
}

func (s *spy) Open(limiter string, rules []core.StoreRule) (core.Counters, error) {
	c, err := s.Store.Open(limiter, rules)
	return spied{c, s}, err
}

type spied struct {
	core.Counters
	spy *spy
}

func (c spied) Do(ctx context.Context, batch *core.Batch) error {
	c.spy.ops.Add(1)
	return c.Counters.Do(ctx, batch)
}

// A request is one take, and one more if the file has a dry run.
func TestManyPoliciesAreOneTake(t *testing.T) {
	for dryRun, want := range map[string]int64{"": 1, ", {name: d, limits: 1/h, dry-run: true}, {name: e, limits: 9/h, dry-run: true}": 2} {
		memory := core.Must(core.NewMemory(core.MemoryConfig{}))
		store := &spy{Store: memory}
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 3000/h}, {name: b, limits: 500/h}, {name: c, limits: 2000/h}"+dryRun+"]"), policy.WithStore(store))
		must(t, err)
		const requests = 400
		var all sync.WaitGroup
		for range requests {
			all.Go(func() { set.Check(get("/")) })
		}
		all.Wait()
		if ops := store.ops.Load(); ops != requests*want {
			t.Errorf("%d operations for %d requests, want %d of each", ops, requests, want)
		}
		for rule, want := range map[string]int64{"a": 2600, "b": 100, "c": 1600} {
			if d, err := set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: rule}); err != nil || d.Remaining != want {
				t.Errorf("%s has %d left (%v), want %d", rule, d.Remaining, err, want)
			}
		}
		must(t, set.Close(), memory.Close())
	}
}

// waitsFor parses a file and makes requests one after the other, without waiting for their
// ends. It returns how long each of them has waited, -1 for those that were denied.
func waitsFor(t *testing.T, text string, n int, opts ...policy.Option) []time.Duration {
	t.Helper()
	all := make([]time.Duration, n)
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("f", []byte(text), opts...)
		must(t, err)
		defer set.Close() //nolint:errcheck // the test is over
		var over sync.WaitGroup
		for i := range n {
			over.Go(func() {
				begun := time.Now()
				d := set.Check(get("/", floodgatetest.From("10.0.0.1:5")))
				if all[i] = time.Since(begun); !d.Allowed {
					all[i] = -1 - all[i]
				}
			})
			synctest.Wait()
		}
		over.Wait()
	})
	return all
}

// A request waits as long as all policies that deny it let it.
func TestRequestsWaitAsThePoliciesSay(t *testing.T) {
	const two, tooLate = "1/2s fixed_window", -1 - 2*time.Second // denied as the head of its line
	for name, c := range map[string]struct {
		text string
		want [3]time.Duration // -1: denied at once
	}{
		"one":                            {"policies: [{name: a, limits: " + two + ", wait: 2s}]", [3]time.Duration{0, 2 * time.Second, tooLate}},
		"longer":                         {"policies: [{name: a, limits: " + two + ", wait: 4s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"each tier":                      {"policies: [{name: a, wait: 4s, tier: method, tiers: {default: " + two + "}}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"shorter":                        {"policies: [{name: a, limits: " + two + ", wait: 1s}]", [3]time.Duration{0, -1, -1}},
		"none":                           {"policies: [{name: a, limits: " + two + "}]", [3]time.Duration{0, -1, -1}},
		"a dry run":                      {"policies: [{name: a, limits: " + two + ", wait: 9s, dry-run: true}]", [3]time.Duration{}},
		"beside a dry run":               {"policies: [{name: a, limits: " + two + ", wait: 2s}, {name: b, limits: 1/h, wait: 9s, dry-run: true}]", [3]time.Duration{0, 2 * time.Second, tooLate}},
		"one that denies and waits less": {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + ", wait: 1s}]", [3]time.Duration{0, -1, -1}},
		"the first one waits less":       {"policies: [{name: a, limits: " + two + ", wait: 1s}, {name: b, limits: " + two + ", wait: 9s}]", [3]time.Duration{0, -1, -1}},
		"one that denies and waits not":  {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + "}]", [3]time.Duration{0, -1, -1}},
		"one that allows and waits not":  {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: 9/s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"a second one that denies":       {"policies: [{name: a, limits: " + two + ", wait: 9s}, {name: b, limits: " + two + ", wait: 9s}]", [3]time.Duration{0, 2 * time.Second, 4 * time.Second}},
		"no room of a key":               {"{local: {max-waiting-of-key: 1}, policies: [{name: a, limits: " + two + ", wait: 9s}]}", [3]time.Duration{0, 2 * time.Second, -1}},
		"no room of a key, for a slot":   {"{local: {max-waiting-of-key: 1}, policies: [{name: a, in-flight: 1, wait: 9s}]}", [3]time.Duration{0, -1 - 9*time.Second, -1}},
		"a denied address":               {"policies: [{name: a, limits: " + two + ", wait: 9s, deny: [10.0.0.0/8]}]", [3]time.Duration{-1, -1, -1}},
	} {
		if got := waitsFor(t, c.text, 3); [3]time.Duration(got) != c.want {
			t.Errorf("%s: waited %v, want %v", name, got, c.want)
		}
	}
	got := waitsFor(t, "policies: [{name: a, limits: "+two+", wait: 9s}]", 3, policy.WithoutWaiting())
	if [3]time.Duration(got) != [3]time.Duration{0, -1, -1} {
		t.Errorf("without waiting: waited %v", got)
	}
}

// A denied address takes no room in the line, and is denied at once while others wait.
func TestADeniedAddressIsNotInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := policy.Parse("f", []byte("policies: [{name: a, limits: 1/2s fixed_window, wait: 9s}, {name: b, limits: 9/s, deny: [10.0.0.0/8]}]"))
		must(t, err)
		defer set.Close() //nolint:errcheck // the test is over
		set.Check(get("/", floodgatetest.From("192.0.2.1:5")))
		go set.Check(get("/", floodgatetest.From("192.0.2.1:5")))
		synctest.Wait()
		begun := time.Now()
		if d := set.Check(get("/", floodgatetest.From("10.0.0.1:5"))); d.Allowed || set.PolicyOf(d.Rule()) != "b" || time.Since(begun) != 0 {
			t.Errorf("%v of rule %q after %v", d, d.Rule(), time.Since(begun))
		}
		time.Sleep(time.Minute)
	})
}

// A file that is put in force changes how long requests wait; the set says it.
func TestAWaitChangesWithTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const file = "policies: [{name: a, limits: 1/2s fixed_window, wait: 9s}]"
		set, err := policy.Parse("f", []byte(file))
		must(t, err)
		defer set.Close() //nolint:errcheck // the test is over
		set.Check(get("/"))
		if d := set.Check(get("/")); !d.Allowed || d.Waited != 2*time.Second {
			t.Errorf("%v after %v", d, d.Waited)
		}
		if got := set.Policies()[0].Wait; got != 9*time.Second {
			t.Errorf("the policy waits %v", got)
		}
		must(t, set.Replace([]byte("policies: [{name: a, limits: 1/2s fixed_window}]")))
		time.Sleep(2 * time.Second)
		set.Check(get("/"))
		if d := set.Check(get("/")); d.Allowed || d.Waited != 0 {
			t.Errorf("%v after %v", d, d.Waited)
		}
		must(t, set.Replace([]byte("policies: [{name: a, in-flight: 1, wait: 9s}]")))
		held := set.Check(get("/"))
		time.AfterFunc(2*time.Second, func() { set.Settle(get("/"), held, core.Outcome{Status: 200}) })
		if d := set.Check(get("/")); !d.Allowed || d.Waited != 2*time.Second {
			t.Errorf("for a slot: %v after %v", d, d.Waited)
		}
	})
}
