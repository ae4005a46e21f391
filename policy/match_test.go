package policy_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
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

func TestListsOfAddresses(t *testing.T) {
	s := newSite(t, `
client-ip: {trusted-proxies: [192.0.2.1], header: X-Forwarded-For}
policies:
  - name: api
    limits: 1/m
    cost: 0
    exempt: [10.0.0.0/8, "2001:db8:1::/48"]
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

// A list only denies all other addresses, whatever the limits are and whether or not
// the client has an address. It concerns the requests of the policy's match.
func TestAListOnlyDeniesAllOthers(t *testing.T) {
	s := newSite(t, `
policies:
  - name: admin
    match: {paths: [/admin/**]}
    limits: 2/m
    cost: 0
    only: [10.0.0.0/8, "2001:db8::/32"]
    exempt: [10.9.0.0/16, 192.0.2.9]
    deny: [10.6.6.0/24]
`)
	s.expect(200, "GET", "/admin/x", from("10.0.0.1"))
	s.expect(200, "GET", "/admin/x", from("[2001:db8::1]"))
	s.expect(200, "GET", "/admin/x", from("[::ffff:10.0.0.1]"))
	s.expect(200, "GET", "/admin/x", from("10.9.0.1"))
	for _, address := range []string{"203.0.113.9", "[2001:db9::1]", "10.6.6.1", "192.0.2.9", "nobody"} {
		if w := s.expect(403, "GET", "/admin/x", from(address)); !strings.Contains(w.Body.String(), "Forbidden") || w.Header().Get("Retry-After") != "" {
			t.Errorf("%s: %q %v", address, w.Body, w.Header())
		}
		s.expect(200, "GET", "/other", from(address))
		s.expect(403, "OPTIONS", "/admin/x", from(address), header("Access-Control-Request-Method", "PUT"))
	}
	s.expect(200, "OPTIONS", "/admin/x", from("10.0.0.1"), header("Access-Control-Request-Method", "PUT"))
	s = newSite(t, `policies: [{name: a, limits: 1/m, only: [10.0.0.0/8], exempt: [10.9.0.0/16]}]`)
	s.expect(200, "GET", "/", from("10.0.0.1"))
	s.expect(429, "GET", "/", from("10.0.0.2")) // who may come is limited
	for range 3 {
		s.expect(200, "GET", "/", from("10.9.0.1"))
	}
}

func TestAnExemptAddressIsNotCounted(t *testing.T) {
	s := newSite(t, `policies: [{name: a, limits: 1/m, exempt: [10.0.0.1]}]`)
	for range 3 {
		s.expect(200, "GET", "/", from("10.0.0.1"))
	}
	s.expect(200, "GET", "/", from("10.0.0.2"))
	s.expect(429, "GET", "/", from("10.0.0.2"))
}

func TestOnlyAppliesWhatItNames(t *testing.T) {
	s := newSite(t, "policies: [{name: a, limits: 1/m}, {name: b, limits: 2/m}]")
	if _, err := s.set.Only("c"); err == nil || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("of a policy that is not there: %v", err)
	}
	if _, err := s.set.Only(); err == nil {
		t.Error("of no policy: no error")
	}
	names := []string{"b"}
	b, err := s.set.Only(names...)
	if err != nil {
		t.Fatal(err)
	}
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
	only, err := s.set.Only("a")
	if err != nil {
		t.Fatal(err)
	}
	s.mount(only)
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "POST", "/")
	s.expect(403, "GET", "/", from("10.0.0.1"))
	s.expect(200, "GET", "/", from("10.0.0.2"))
	if d, err := s.set.Limiter().Peek(t.Context(), 1, core.Hit{Rule: "b"}); err != nil || d.Remaining != 5 {
		t.Errorf("%d left of b, %v: want all 5", d.Remaining, err)
	}
}
