package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
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

// Normalize does not change its own result. Spellings that differ in ASCII letter case or in
// white space at the ends have the same result.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"alice", " ALICE ", "ａｌｉｃｅ", "e\u0301", "ß", "İ", "ﬀ", "\xff", "K", "a\u200bb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := login.Normalize(s)
		if again := login.Normalize(n); again != n {
			t.Errorf("%q becomes %q, and that %q", s, n, again)
		}
		if !strings.Contains(s, "\xff") && strings.ToValidUTF8(s, "") == s && login.Normalize(" "+s+"\t") != n {
			t.Errorf("%q with white space is another account", s)
		}
	})
}

func TestASourceThatSkipsFindsNoUsername(t *testing.T) {
	leaves := keyfuncs.Func(func(core.Request) (string, error) { return "mallory", core.SkipRule })
	s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{leaves, keyfuncs.OrSkip(login.BasicUser())}})
	s.want(many(7, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:2]")
	if st, err := s.guard.Status(t.Context(), "mallory", "203.0.113.1"); err != nil || st.Account.Remaining != 100 {
		t.Errorf("%+v, %v", st, err)
	}
	// It does not make a request without a body an attempt.
	s.want(many(30, func(int) int { return s.serve(basicGet(""), http.StatusOK) }), "map[200:30]")
}

// Finding it may cost a parse of the body.
func TestTheUsernameIsLookedForOncePerAttempt(t *testing.T) {
	looked := 0
	s := newSite(t, login.Config{Secrets: [][]byte{secret}, Sources: []core.KeyFunc{keyfuncs.Func(func(core.Request) (string, error) {
		looked++
		return "alice", nil
	})}})
	s.want(many(7, func(int) int { return s.wrong("203.0.113.1", "") }), "map[401:5 429:2]")
	if looked != 7 {
		t.Errorf("7 attempts look for the username %d times", looked)
	}
}

// Unnamed requests share one account, which is nobody's.
func TestARequestWithoutAUsernameMakesNoAddressKnown(t *testing.T) {
	s := newSite(t, login.Config{AllowUnnamed: true, AccountFailures: core.PerHour(3)})
	s.right("192.0.2.1", "")
	many(3, func(i int) int { return s.wrong(ip(i), "") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "") }), "map[429:1]")
}

// Protection against CSRF has parsed the form, and a middleware has put the username into the
// request's context.
func TestASourceReadsTheContextBehindAMiddlewareThatHasParsedTheForm(t *testing.T) {
	type usernameKey struct{}
	guard := core.Must(login.NewGuard(login.Config{Sources: []core.KeyFunc{keyfuncs.UserValue(usernameKey{})}}))
	defer guard.Close() //nolint:errcheck // never fails without a shared store
	limited := httplimit.Middleware(guard)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	got := many(7, func(int) int {
		r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader("username=alice&password=x"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		limited.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), usernameKey{}, r.PostFormValue("username"))))
		return w.Code
	})
	if got != "map[401:5 429:2]" {
		t.Errorf("statuses %s", got)
	}
}

// A key function that fails must not let an attempt through.
func TestAnAttemptWithoutAnAddressOrAnAccountIsDenied(t *testing.T) {
	fails := keyfuncs.Func(func(core.Request) (string, error) { return "", errGone })
	rejects := keyfuncs.Func(func(core.Request) (string, error) { return "", fmt.Errorf("%w: no address", core.ErrBadRequest) })
	for name, row := range map[string]struct {
		c      login.Config
		status int
	}{
		"ClientIP fails":        {login.Config{ClientIP: fails}, http.StatusServiceUnavailable},
		"ClientIP rejects":      {login.Config{ClientIP: rejects}, http.StatusBadRequest},
		"a source fails":        {login.Config{Sources: []core.KeyFunc{fails}}, http.StatusServiceUnavailable},
		"another source fails":  {login.Config{Field: "username", Sources: []core.KeyFunc{fails}}, http.StatusServiceUnavailable},
		"a source rejects":      {login.Config{Sources: []core.KeyFunc{rejects}}, http.StatusBadRequest},
		"unnamed, and it fails": {login.Config{Sources: []core.KeyFunc{fails}, AllowUnnamed: true}, http.StatusServiceUnavailable},
	} {
		s := newSite(t, row.c)
		if got := s.right("203.0.113.1", "alice"); got != row.status || s.reached.Load() != 0 {
			t.Errorf("%s: status %d, want %d", name, got, row.status)
		}
	}
	s := newSite(t, login.Config{ClientIP: fails})
	if st, err := s.guard.Status(t.Context(), "alice", "203.0.113.1"); !errors.Is(err, errGone) {
		t.Errorf("Status: %+v, %v", st, err)
	}
}
