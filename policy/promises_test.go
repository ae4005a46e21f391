package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// Three in ten seconds: the third request fills the quota. Further requests are
// denied and do not reach the handler. Hits that are left over are lost when the
// window ends, and a window begins at the first request.
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
	s.pass(10 * time.Second) // with 2 left
	for range 3 {
		s.expect(200, "GET", "/")
	}
	s.expect(429, "GET", "/")
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

// Header names are matched in any letter case, values are not folded.
func TestHeaderNamesHaveNoCaseAndTheirValuesDo(t *testing.T) {
	for _, key := range []string{`header["x-plan"]`, `header["X-PLAN"]`, `#[attributes.headers["X-Plan"]]`, `#[attributes.headers['x-plan']]`} {
		s := newSite(t, `policies: [{name: api, key: '`+strings.ReplaceAll(key, "'", "''")+`', limits: 1/m}]`)
		s.expect(200, "GET", "/", header("x-plan", "Gold"))
		s.expect(200, "GET", "/", header("X-Plan", "gold"))
		s.expect(429, "GET", "/", header("X-PLAN", "gold"))
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
			`header["x-id"] == "b" ? "b" : ""`: "The request cannot be understood.", `user`: "The request cannot be understood.",
		} {
			s := newSite(t, "policies: [{name: api, key: '"+key+"', missing: reject, limits: 1/m}]", policy.WithUser(func(core.Request) string { return "" }))
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
}

// With fallback, a value that begins with a question mark gets another one, so that it
// is not the key of a request without the value. Without fallback it stays as it is.
func TestAKeyThatBeginsWithAQuestionMark(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'query["id"]', missing: reject, limits: 5/h}, {name: b, key: 'query["id"]', fallback: ip, limits: 5/h}]`)
	s.expect(200, "GET", "/?id=%3Fx")
	for rule, key := range map[string]string{"a": "?x", "b": "??x"} {
		if d, err := s.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: rule, Key: key}); err != nil || d.Remaining != 4 {
			t.Errorf("rule %s: %d left of %s, want 4: %v", rule, d.Remaining, key, err)
		}
	}
}

// One quota for the addresses of the local network, one for all others.
func TestAnExpressionOfAddresses(t *testing.T) {
	s := newSite(t, `policies: [{name: api, key: 'cidr(ip, "10.0.0.0/8", "192.168.0.0/16")', limits: 1/m}]`)
	s.expect(200, "GET", "/", from("10.1.2.3"))
	s.expect(429, "GET", "/", from("192.168.7.7"))
	s.expect(200, "GET", "/", from("8.8.8.8"))
	s.expect(429, "GET", "/", from("1.1.1.1"))
}

// No selector is one quota for all.
func TestWithoutAKeyAllShareOneQuota(t *testing.T) {
	s := newSite(t, `policies: [{name: api, limits: 2/m}]`)
	s.expect(200, "GET", "/a", from("10.0.0.1"))
	s.expect(200, "POST", "/b", from("10.0.0.2"))
	s.expect(429, "PUT", "/c", from("10.0.0.3"))
}

// A rule's limits hold together, and a request that one of them denies is
// charged to none.
func TestSeveralLimitsOfARule(t *testing.T) {
	s := newSite(t, `policies: [{name: api, limits: [2/s fixed_window, {maximumRequests: 3, timePeriodInMilliseconds: 60000}]}]`)
	s.expect(200, "GET", "/")
	s.expect(200, "GET", "/")
	for range 5 {
		s.expect(429, "GET", "/")
	}
	s.pass(time.Second)
	s.expect(200, "GET", "/") // the third of the minute: the denied ones were not counted
	s.expect(429, "GET", "/")
}

func TestHeadersOfEachForm(t *testing.T) {
	for form, want := range map[string]map[string]string{
		"x-milliseconds": {"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "2", "X-Ratelimit-Reset": "6000"},
		"x-seconds":      {"X-Ratelimit-Limit": "3", "X-Ratelimit-Remaining": "2", "X-Ratelimit-Reset": "6"},
		"draft-10":       {"Ratelimit": `"api";r=2;t=6`, "Ratelimit-Policy": `"api";q=3;w=6`},
		"draft-07":       {"Ratelimit": "limit=3, remaining=2, reset=6", "Ratelimit-Policy": "3;w=6"},
		"draft-03":       {"Ratelimit-Limit": "3", "Ratelimit-Remaining": "2", "Ratelimit-Reset": "6"},
		"off":            {"Ratelimit": "", "X-Ratelimit-Limit": "", "Ratelimit-Limit": ""},
		"[x-seconds, draft-10]": {
			"X-Ratelimit-Reset": "6", "Ratelimit": `"api";r=2;t=6`,
		},
	} {
		s := newSite(t, `policies: [{name: api, limits: 3/6s fixed_window, headers: `+form+`}]`)
		w := s.expect(200, "GET", "/")
		for name, value := range want {
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", form, name, got, value)
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
}

// Shared counting needs a store that is shared.
func TestCountingIsSharedWhereThereIsAStore(t *testing.T) {
	if _, err := policy.Parse("f", []byte(`policies: [{name: a, counting: shared, limits: 1/s}]`)); err == nil {
		t.Error("shared counting without a store is no error")
	}
	s := newSite(t, `
store: {redis: {address: "127.0.0.1:1"}}
policies: [{name: a, limits: 1/s}, {name: b, limits: 1/s, counting: local}]`)
	e := s.set.Explain(&explained{})
	if !e[0].Shared || e[1].Shared {
		t.Errorf("shared: %t and %t, want true and false", e[0].Shared, e[1].Shared)
	}
}

// Units are what people write.
func TestUnitsOfWindows(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1/500ms": 500 * time.Millisecond, "1/s": time.Second, "1/6s": 6 * time.Second, "1/m": time.Minute,
		"1/2h": 2 * time.Hour, "1/d": 24 * time.Hour, "1/w": 7 * 24 * time.Hour,
	} {
		s := newSite(t, "policies: [{name: a, limits: "+text+" fixed_window}]")
		s.expect(200, "GET", "/")
		s.pass(want - time.Millisecond)
		s.expect(429, "GET", "/")
		s.pass(time.Millisecond)
		s.expect(200, "GET", "/")
	}
}
