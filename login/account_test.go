package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

func TestAllSourcesAndSpellingsOfAUsernameShareOneAccount(t *testing.T) {
	c := login.Config{
		Field: "username",
		Sources: []core.KeyFunc{
			keyfuncs.PostField("email"), keyfuncs.PostField("user[name]"),
			keyfuncs.PostField("-", keyfuncs.JSONPath("user", "name")), login.BasicUser(),
		},
		Attempts: core.PerMinute(1000),
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("alice:x"))
	post := func(kind, body string, header ...string) *request {
		r := form("203.0.113.1", "")
		r.header = http.Header{"Content-Type": {kind}}
		for i := 0; i < len(header); i += 2 {
			r.header.Add(header[i], header[i+1])
		}
		r.body = body
		return r
	}
	const urlencoded, jsonType = "application/x-www-form-urlencoded", "application/json"
	s := newSite(t, c)
	all := []*request{
		form("203.0.113.1", "alice"), form("203.0.113.1", "\u2028\u1680ALICE\u0085 "), form("203.0.113.1", "ａｌｉｃｅ"),
		post(urlencoded, "email=alice"), post(urlencoded, "user%5Bname%5D=alice"), post(jsonType, `{"username":"Alice"}`),
		post(jsonType, `{"user":{"name":"alice"}}`), post("text/plain", "", "Authorization", basic),
		post(urlencoded, "username=alice&email=ALICE", "Authorization", basic),
	}
	for i, r := range all {
		if got, want := s.serve(r, 401), map[bool]int{true: 401, false: 429}[i < 5]; got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	for name, r := range map[string]*request{
		"another": form("203.0.113.1", "bob"), "with a space": form("203.0.113.1", "ali ce"),
	} {
		if got := s.serve(r, 401); got != 401 {
			t.Errorf("%s: %d, want an account of its own", name, got)
		}
	}
	if login.Normalize("e\u0301") != login.Normalize("É") {
		t.Error("composed and decomposed characters differ")
	}
	for name, r := range map[string]*request{
		"NUL":                     form("203.0.113.1", "alice\x00"),
		"zero width":              form("203.0.113.1", "alice\u200b"),
		"a separator inside":      form("203.0.113.1", "ali\u2028ce"),
		"no UTF-8":                form("203.0.113.1", "alice\xff"),
		"too long":                form("203.0.113.1", "alice"+strings.Repeat(" ", 1024)),
		"Basic, zero width":       post("text/plain", "", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("ali\u200bce:x"))),
		"XML beside Basic":        post("text/xml", "<a/>", "Authorization", basic),
		"two different usernames": post(urlencoded, "username=alice&email=bob"),
		"form and Basic":          post(urlencoded, "username=bob", "Authorization", basic),
		"no username":             post(urlencoded, "password=x"),
		"white space":             form("203.0.113.1", " \t "),
		"twice":                   post(urlencoded, "username=a&username=b"),
		"two Authorization":       post(urlencoded, "username=alice", "Authorization", basic, "Authorization", basic),
		"another type":            post("text/plain", "username=alice"),
		"malformed":               post(jsonType, `{"username":`),
		"Basic without a colon":   post("text/plain", "", "Authorization", "Basic YWxpY2U="),
		"Basic without base64":    post("text/plain", "", "Authorization", "Basic %%%"),
		"another authentication":  post("text/plain", "", "Authorization", "Bearer x"),
	} {
		reached := s.reached.Load()
		if got := s.serve(r, 401); got != http.StatusBadRequest || s.reached.Load() != reached {
			t.Errorf("%s: %d, want 400", name, got)
		}
	}
	for _, authorization := range []string{"Basic\tYWxpY2U6eA==", "BasicXYWxpY2U6eA==", "BasicYWxpY2U6eA==", "Basic", "Basic YWxpY2U=", "bAsIc %%%"} {
		if got := s.serve(post(urlencoded, "username=alice", "Authorization", authorization), 401); got != http.StatusBadRequest {
			t.Errorf("%q beside another name: %d, want 400", authorization, got)
		}
	}
	for _, authorization := range []string{"Bearer x", "", "Bas", "Digest username=\"bob\""} {
		if got := s.serve(post(urlencoded, "username=carol", "Authorization", authorization), 200); got != http.StatusOK {
			t.Errorf("%q beside another name: %d, want 200", authorization, got)
		}
	}
	c.AllowUnnamed = true
	s = newSite(t, c)
	s.want(many(7, func(i int) int {
		return s.serve([]*request{post(urlencoded, "password=x"), post(urlencoded, "username="), post(jsonType, "{}"), post("text/plain", "")}[i%4], 401)
	}), "map[401:5 429:2]")
	for name, r := range map[string]*request{
		"XML": post("text/xml", "<a><username>victim</username></a>"), "text": post("text/plain", "username=victim"), "no type": post("", `{"username":"victim"}`),
		"a list": post(jsonType, `{"username":["victim"]}`), "malformed": post(jsonType, `{"username":"victim"`),
		"a long body": post(urlencoded, "username=victim&pad="+strings.Repeat("x", 70_000)), "twice": post(urlencoded, "username=a&username=victim"),
	} {
		if got := s.serve(r, 401); got != http.StatusBadRequest {
			t.Errorf("a body that a handler may read and the guard cannot: %s: %d, want 400", name, got)
		}
	}
}

func TestNamelessRequestsAreChargedToTheAddress(t *testing.T) {
	s := newSite(t, login.Config{})
	r := form("203.0.113.1", "")
	s.want(many(25, func(int) int { return s.serve(r, 401) }), "map[400:20 429:5]")
}

// A handler that reads the query and the form together would read a username that the
// guard has not counted.
func TestTheFieldInTheQueryIsRejected(t *testing.T) {
	for _, query := range []string{"username=victim", "UserName=victim", "a=b&username[]=victim", "a;username=victim"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "QUERY", "POST"} {
			for _, body := range []string{"", "username=decoy"} {
				if method == "GET" && body != "" {
					continue
				}
				s := newSite(t, login.Config{})
				r := form("203.0.113.1", "")
				r.method, r.query, r.body = method, query, body
				s.want(many(21, func(int) int { return s.serve(r, 401) }), "map[400:20 429:1]")
				if s.reached.Load() != 0 {
					t.Errorf("%s ?%s with the body %q reached the handler", method, query, body)
				}
			}
		}
	}
	s := newSite(t, login.Config{})
	page := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1", query: "next=%2Fhome"}
	s.want(many(100, func(int) int { return s.serve(page, 200) }), "map[200:100]")
}

// The response says which field is wrong and why. It does not repeat what the client sent.
func TestBadRequestsNameTheFieldAndNotItsValue(t *testing.T) {
	for _, row := range []struct{ field, body, query, want string }{
		{"username", "password=x", "", `the field "username" is missing or empty`},
		{"username", "username=victim&USERNAME=victim", "", `the field "username" is given twice`},
		{"username", "username=victim", "username=victim", `the field "username" must not be in the URL's query`},
		{"username", "username=vic%00tim", "", `the field "username": a name must be UTF-8 text, without control characters, invisible characters and special spaces`},
		{"username", "username=victim" + strings.Repeat("m", 1024), "", `the field "username": a name has at most 1024 bytes`},
		{"user\"\n[name]", "a=victim", "", "the field \"user\\\"\\n[name]\" is missing or empty"},
	} {
		s := newSite(t, login.Config{Field: row.field})
		r := form("203.0.113.1", "")
		r.body, r.query = row.body, row.query
		denial := s.guard.Deny(r, s.guard.Check(r))
		var problem struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal(denial.Body, &problem); err != nil {
			t.Errorf("%s: %v", denial.Body, err)
		}
		if denial.Status != 400 || problem.Status != 400 || problem.Detail != row.want || strings.Contains(string(denial.Body), "victim") {
			t.Errorf("%d %s, want the detail %s", denial.Status, denial.Body, row.want)
		}
		if got := fmt.Sprint(denial.Header); !strings.Contains(got, "application/problem+json") {
			t.Errorf("header %s", got)
		}
	}
}

// White space is removed before Config.Normalize is called.
func TestConfigNormalizeGetsTrimmedNames(t *testing.T) {
	s := newSite(t, login.Config{Normalize: strings.ToLower, Attempts: core.PerMinute(1000)})
	s.want(many(7, func(i int) int { return s.wrong("203.0.113.1", []string{"Alice", "alice\u2028"}[i%2]) }), "map[401:5 429:2]")
	if st, err := s.guard.Status(t.Context(), " ALICE\u0085", "203.0.113.1"); err != nil || !st.AddressAccount.Denied {
		t.Errorf("%+v, %v", st, err)
	}
}
