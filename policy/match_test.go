package policy_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/floodgatetest"
	"github.com/floodgate-go/floodgate/internal/redistest"
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
	s.expect(200, "HEAD", "/")
	s.expect(429, "OPTIONS", "/", header("Access-Control-Request-Method", "PUT"))
	r := serving(t, "policies: [{name: all, in-flight: 1, match: {methods: [OPTIONS]}}]")
	r.set.Check(floodgatetest.NewRequest("OPTIONS", "/", floodgatetest.Header("Access-Control-Request-Method", "PUT")))
	r.held(1)
}

func TestListsOfAddresses(t *testing.T) {
	s := newSite(t, `
client-ip: {trusted-proxies: [192.0.2.1], header: X-Forwarded-For}
policies:
  - name: api
    limits: 1/m fixed_window
    exempt: [10.0.0.0/8, 203.0.113.7]
    deny: [10.6.6.0/24, 203.0.113.0/28, "2001:db8:1:2:3::/80"]
`)
	s.expect(200, "GET", "/", from("198.51.100.1"))
	s.expect(429, "GET", "/", from("198.51.100.1"))
	for address, status := range map[string]int{
		"10.0.0.1": 200, "10.6.6.6": 200, "203.0.113.7": 200, // exempt, also from the list deny
		"203.0.113.9": 403, "[::ffff:203.0.113.9]": 403, "203.0.113.16": 429,
		"[2001:db8:1:2:3::5]": 403, "[2001:db8:1:2:4::5]": 429, // addresses are not cut for lists
		"192.0.2.1": 403, // a proxy: it speaks for another address
	} {
		w := s.expect(status, "GET", "/", from(address), header("X-Forwarded-For", "203.0.113.9"))
		const forbidden = `{"type":"about:blank","title":"Forbidden","status":403}`
		if status == 403 && (w.Body.String() != forbidden || w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %q %v", address, w.Body, w.Header())
		}
	}
}

// A list only denies all other addresses, whatever the limits are and whether or not the client has
// an address. It concerns the requests of the policy's match, and CORS preflights too.
func TestAListOnlyDeniesAllOthers(t *testing.T) {
	s := newSite(t, `
policies:
  - name: admin
    match: {paths: [/admin/**]}
    limits: 1/m fixed_window
    cost: 0
    only: [10.0.0.0/8, "2001:db8::/32"]
    exempt: [192.0.2.9]
    deny: [10.6.6.0/24]
`)
	preflight := header("Access-Control-Request-Method", "PUT")
	for address, status := range map[string]int{
		"10.0.0.1": 200, "[2001:db8::1]": 200, "[::ffff:10.0.0.1]": 200, "192.0.2.9": 200,
		"203.0.113.9": 403, "[2001:db9::1]": 403, "10.6.6.1": 403, "nobody": 403,
	} {
		s.expect(status, "GET", "/admin/x", from(address))
		s.expect(status, "OPTIONS", "/admin/x", from(address), preflight)
		s.expect(200, "GET", "/other", from(address))
	}
}

func TestOnlyAppliesWhatItNames(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}, {name: b, limits: 2/m}]")
	if _, err := s.set.Only("a", "c"); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("of a policy that is not there: %v", err)
	}
	if _, err := s.set.Only(); err == nil {
		t.Error("of no policy: no error")
	}
	names := []string{"b"}
	b := core.Must(s.set.Only(names...))
	names[0] = "a" // the caller's slice
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
}

func TestAPolicyByItself(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m, match: {methods: [GET]}, deny: [10.0.0.1], exempt: [10.0.0.2]}, {name: b, limits: 5/m}]")
	s.mount(core.Must(s.set.Only("a")))
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "POST", "/")
	s.expect(403, "GET", "/", from("10.0.0.1"))
	s.expect(200, "GET", "/", from("10.0.0.2"))
	if d, err := s.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: "b"}); err != nil || d.Remaining != 5 {
		t.Errorf("%d left of b, %v: want all 5", d.Remaining, err)
	}
}

// A denied address is denied whatever becomes of the store.
func TestDenyListsNeedNoStore(t *testing.T) {
	for _, onFailure := range []string{"local", "fail-open", "fail-closed"} {
		s := instance(t, "store: {redis: {address: \"127.0.0.1:1\"}, on-failure: "+onFailure+"}\npolicies: [{name: p, deny: [203.0.113.0/24], limits: 1000/h}]")
		for range 8 {
			s.expect(403, "GET", "/", from("203.0.113.7"))
		}
	}
	redis := redistest.Start(t)
	s := instance(t, "store: {redis: {address: \""+redis.Addr+"\", timeout: 5s}}\npolicies: [{name: p, deny: [203.0.113.0/24], limits: 1000/h}]")
	s.expect(403, "GET", "/", from("203.0.113.7"))
	if got := redis.MustDo("DBSIZE"); got != ":0" {
		t.Errorf("a denied address left keys in the store: DBSIZE is %s", got)
	}
}

// Whether a policy counts in the store depends on no other policy's name.
func TestAPolicysPlaceDependsOnNoOtherName(t *testing.T) {
	for name, other := range map[string]string{
		"p-staff":     "{name: p, counting: local, match: {paths: [/other]}, tiers: {default: 3/h, staff: unlimited}, tier: method}",
		"p.deny-list": "{name: p, counting: local, match: {paths: [/other]}, limits: 3/h}",
		"unrelated":   "{name: p, counting: local, match: {paths: [/other]}, limits: 3/h}",
	} {
		redis := redistest.Start(t)
		file := fmt.Sprintf("store: {redis: {address: %q, timeout: 5s}, on-failure: fail-closed}\npolicies:\n  - {name: %s, limits: 3/h, match: {paths: [/shared]}}\n  - %s\n", redis.Addr, name, other)
		allowed := 0
		for range 3 {
			s := instance(t, file)
			for range 3 {
				if s.send("GET", "/shared").Code == 200 {
					allowed++
				}
			}
		}
		if allowed != 3 {
			t.Errorf("a policy %s beside %s: three instances allow %d, want 3", name, other, allowed)
		}
	}
}

// Of several policies that deny a request, the one with the longest wait decides,
// wherever it is in the file: the status, the body and Retry-After are its own. The
// RateLimit fields are those of all.
func TestOfSeveralDenialsTheLongestWaitDecides(t *testing.T) {
	policies := []string{
		"{name: minute, limits: 1/m fixed_window, headers: draft-10, on-denied: {status: 503, body: minute, headers: {X-Why: minute}}}",
		"{name: hour, limits: 1/h fixed_window, headers: draft-10, on-denied: {status: 500, body: hour, headers: {X-Which: hour}}}",
		"{name: second, limits: 1/s fixed_window, headers: draft-10, on-denied: {status: 418, body: second}}",
		"{name: open, limits: 9/m fixed_window, headers: draft-10}",
	}
	for range policies {
		policies = append(policies[1:], policies[0])
		s := newSite(t, "policies: ["+strings.Join(policies, ", ")+"]")
		s.expect(200, "GET", "/")
		w := s.expect(500, "GET", "/")
		h := w.Header()
		if w.Body.String() != "hour" || h.Get("Retry-After") != "3600" || h.Get("X-Which") != "hour" || h.Get("X-Why") != "" || len(h.Values("Retry-After")) != 1 {
			t.Errorf("%v: %q %v", policies, w.Body, h)
		}
		if got := fields(h); got != "hour:0 minute:0 open:8 second:0" {
			t.Errorf("%v: a denied request has the fields %s", policies, got)
		}
		s.pass(time.Second) // second allows again
		if got := fields(s.expect(500, "GET", "/").Header()); got != "hour:0 minute:0 open:8 second:1" {
			t.Errorf("%v: a second later it has the fields %s", policies, got)
		}
		if got := s.used("open", 9); got != 1 {
			t.Errorf("%v: the policy that allows was charged %d times, want once", policies, got)
		}
	}
}

// fields are the policies that a response names in RateLimit, and what is left.
func fields(h http.Header) string {
	var all []string
	for _, line := range h.Values("Ratelimit") {
		for item := range strings.SplitSeq(line, ",") {
			var left int
			name, rest, _ := strings.Cut(strings.TrimSpace(item), ";")
			_, _ = fmt.Sscanf(rest, "r=%d", &left)
			all = append(all, fmt.Sprintf("%s:%d", strings.Trim(name, `"`), left))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// Of equal waits the first in the file decides. A wait without end is longer than
// any other: a denied address is told so, whatever else denies it. What is at fault
// with a request is said if no limit denies it and nothing else fails.
func TestWhichOfDifferentDenialsDecides(t *testing.T) {
	for first, c := range map[string]struct {
		second string
		status int
	}{
		"limits: 0/m aligned, on-denied: {status: 501}":                           {"limits: 0/m aligned, on-denied: {status: 502}", 501},
		"limits: 0/h, on-denied: {status: 504}":                                   {"limits: 5/m, deny: [192.0.2.0/24]", 403},
		"limits: 1/m fixed_window, cost: '2', on-denied: {status: 505}":           {"limits: 5/m, only: [10.0.0.0/8]", 403},
		"limits: 0/h, key: method, on-denied: {status: 506}":                      {`key: 'query["k"]', missing: reject, limits: 9/m`, 506},
		`key: 'query["k"]', missing: reject, limits: 9/m`:                         {"tiers: {default: 9/m}", 503},
		"limits: 9/m, match: {methods: [GET]}, key: ip, on-denied: {status: 507}": {`key: 'query["k"]', missing: reject, limits: 9/m`, 400},
	} {
		s := newSite(t, "policies: [{name: a, "+first+"}, {name: b, "+c.second+"}]", policy.WithTier(func(core.Request) (string, error) { return "", context.DeadlineExceeded }))
		s.expect(c.status, "GET", "/")
		if c.status != 501 {
			newSite(t, "policies: [{name: b, "+c.second+"}, {name: a, "+first+"}]", policy.WithTier(func(core.Request) (string, error) { return "", context.DeadlineExceeded })).expect(c.status, "GET", "/")
		}
	}
}
