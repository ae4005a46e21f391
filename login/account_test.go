package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/requestlog"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
)

const urlencoded, jsonType = "application/x-www-form-urlencoded", "application/json"

// sent is an attempt with a body and a header Authorization, "" for none.
func sent(kind, body, authorization string) *request {
	r := form("203.0.113.1", "")
	r.header, r.body = http.Header{"Content-Type": {kind}}, body
	if authorization != "" {
		r.header.Set("Authorization", authorization)
	}
	return r
}

func basicOf(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":x"))
}

func TestAllSourcesAndSpellingsOfAUsernameShareOneAccount(t *testing.T) {
	s := newSite(t, login.Config{
		Field:    "username",
		Sources:  []core.KeyFunc{keyfuncs.PostField("email"), keyfuncs.PostField("-", keyfuncs.JSONPath("user", "name")), login.BasicUser()},
		Attempts: core.PerMinute(1000),
	})
	for i, r := range []*request{
		form("203.0.113.1", "alíce"), form("203.0.113.1", "\u2028\u1680ALÍCE\u0085 "), form("203.0.113.1", "ａｌı\u0301ｃｅ"),
		sent(urlencoded, "email=alíce", ""), sent(jsonType, `{"username":"Alíce"}`, ""), sent(jsonType, `{"user":{"name":"alíce"}}`, ""),
		sent("text/plain", "", "bAsIc"+basicOf("alíce")[5:]), sent(urlencoded, "username=alíce&email=ALÍCE", basicOf("alíce")),
	} {
		if got, want := s.serve(r, 401), map[bool]int{true: 401, false: 429}[i < 5]; got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	s.want(many(2, func(i int) int { return s.wrong("203.0.113.1", []string{"bob", "ali ce"}[i]) }), "map[401:2]")
	// Another scheme is no username.
	for _, authorization := range []string{"Bearer x", "Bas", `Digest username="bob"`} {
		if got := s.serve(sent(urlencoded, "username=carol", authorization), 200); got != http.StatusOK {
			t.Errorf("%q beside another name: %d", authorization, got)
		}
	}
}

// A handler could read another username than the guard. Package internal/readers has the attacks
// on fields of the body and of the query.
func TestAmbiguousRequestsAreDeniedWith400(t *testing.T) {
	basic := basicOf("alice")
	twice := sent(urlencoded, "username=alice", basic)
	twice.header.Add("Authorization", basic)
	s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{keyfuncs.PostField("email"), login.BasicUser()}, Attempts: core.PerMinute(1000)})
	for name, r := range map[string]*request{
		"zero width":           form("203.0.113.1", "alice\u200b"),
		"Basic, zero width":    sent("text/plain", "", basicOf("ali\u200bce")),
		"a long body":          sent(urlencoded, "username=victim&pad="+strings.Repeat("x", 70_000), ""),
		"two usernames":        sent(urlencoded, "username=alice&email=bob", ""),
		"form and Basic":       sent(urlencoded, "username=bob", basic),
		"twice":                sent(urlencoded, "username=a&username=b", ""),
		"two Authorization":    twice,
		"Basic, no colon":      sent(urlencoded, "username=alice", "Basic YWxpY2U="),
		"Basic, a tab":         sent(urlencoded, "username=alice", "Basic\tYWxpY2U6eA=="),
		"Basic, another sign":  sent(urlencoded, "username=alice", "BasicXYWxpY2U6eA=="),
		"Basic, without space": sent(urlencoded, "username=alice", "BasicYWxpY2U6eA=="),
	} {
		says := map[string]string{"two usernames": "two different usernames", "two Authorization": "the header Authorization is given twice"}[name]
		if d := s.guard.Check(r); d.Status() != http.StatusBadRequest || !strings.Contains(d.Err.Error(), says) {
			t.Errorf("%s: %v, want 400", name, d)
		}
	}
}

// They are charged to their address. A form that has no username is one account.
func TestRequestsWithoutAUsername(t *testing.T) {
	query := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1", query: "username=victim"}
	nameless := func(i int) *request {
		return []*request{sent(urlencoded, "password=x", ""), form("203.0.113.1", " \t "), sent(jsonType, "{}", ""), sent("text/plain", "", "Bearer x"), query}[i%5]
	}
	s := newSite(t, login.Config{})
	s.want(many(25, func(i int) int { return s.serve(nameless(i), 401) }), "map[400:20 429:5]")
	s = newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}})
	if d := s.guard.Check(sent("text/plain", "", basicOf(" "))); !errors.Is(d.Err, core.ErrBadRequest) || !strings.Contains(d.Err.Error(), "the username is missing") {
		t.Errorf("a blank name: %v", d)
	}
	s = newSite(t, login.Config{Sources: []core.KeyFunc{keyfuncs.Static("pin")}})
	s.want(many(7, func(i int) int { return s.serve(nameless(i), 401) }), "map[401:5 429:2]")
}

// The response says which field is wrong and why. It does not repeat what the client sent.
func TestBadRequestsNameTheFieldAndNotItsValue(t *testing.T) {
	for body, want := range map[string]string{
		"password=x":                                  "missing",
		"username=victim&USERNAME=victim":             "twice",
		"username=vic%00tim":                          "invisible",
		"username=victim" + strings.Repeat("m", 1024): "1024 bytes",
	} {
		s := newSite(t, login.Config{})
		r := sent(urlencoded, body, "")
		denial := s.guard.Deny(r, s.guard.Check(r))
		var problem struct{ Detail string }
		if err := json.Unmarshal(denial.Body, &problem); err != nil || denial.Status != 400 || !strings.Contains(problem.Detail, `"username"`) || !strings.Contains(problem.Detail, want) {
			t.Errorf("%d %s, want the field and %q", denial.Status, denial.Body, want)
		}
		if strings.Contains(string(denial.Body), "victim") {
			t.Errorf("%s", denial.Body)
		}
	}
}

// White space is removed before Config.Normalize is called.
func TestConfigNormalizeGetsTrimmedNames(t *testing.T) {
	s := newSite(t, login.Config{Normalize: func(name string) string { return strings.ReplaceAll(strings.ToLower(name), ".", "") + "." }})
	s.want(many(7, func(i int) int { return s.wrong("203.0.113.1", []string{"Alice", "al.ice\u2028"}[i%2]) }), "map[401:5 429:2]")
	if st := s.status(" A.L.ICE\u0085", "203.0.113.1"); st.AddressAccount.Allowed {
		t.Errorf("%+v", st)
	}
}

// Normalize does not change its own result. Spellings that differ in ASCII letter case or in
// white space at the ends have the same result.
func FuzzNormalize(f *testing.F) {
	for _, s := range []string{"alice", " ALICE ", "ａｌｉｃｅ", "e\u0301", "ß", "İ", "ﬀ", "\xff", "K", "a\u200bb", "ℌ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := login.Normalize(s)
		if again := login.Normalize(n); again != n || strings.ToValidUTF8(s, "") != s && n != s {
			t.Errorf("%q becomes %q, and that %q", s, n, again)
		}
		if strings.ToValidUTF8(s, "") == s && login.Normalize(" "+s+"\t") != n {
			t.Errorf("%q with white space is another account", s)
		}
	})
}

func TestASourceThatSkipsFindsNoUsername(t *testing.T) {
	leaves := keyfuncs.Func(func(core.Request) (string, error) { return "mallory", core.SkipRule })
	s := newSite(t, login.Config{Field: "username", Sources: []core.KeyFunc{leaves}})
	s.want(s.wrongs(7, "203.0.113.1", "alice"), "map[401:5 429:2]")
	if st := s.status("mallory", "203.0.113.1"); st.Account.Remaining != 100 {
		t.Errorf("%+v", st)
	}
	// It does not make a request without a body an attempt.
	s.want(many(30, func(int) int { return s.serve(basicGet(""), http.StatusOK) }), "map[200:30]")
}

// A key function that fails must not let an attempt through.
func TestAnAttemptWithoutAnAddressOrAnAccountIsDenied(t *testing.T) {
	fails := keyfuncs.Func(func(core.Request) (string, error) { return "", errGone })
	rejects := keyfuncs.Func(func(core.Request) (string, error) { return "", fmt.Errorf("%w: no address", core.ErrBadRequest) })
	for name, row := range map[string]struct {
		c      login.Config
		status int
	}{
		"ClientIP fails":   {login.Config{ClientIP: fails}, http.StatusServiceUnavailable},
		"ClientIP rejects": {login.Config{ClientIP: rejects}, http.StatusBadRequest},
		"a source fails":   {login.Config{Field: "username", Sources: []core.KeyFunc{fails}}, http.StatusServiceUnavailable},
		"a source rejects": {login.Config{Sources: []core.KeyFunc{rejects}}, http.StatusBadRequest},
	} {
		s := newSite(t, row.c)
		if got := s.right("203.0.113.1", "alice"); got != row.status || s.reached.Load() != 0 {
			t.Errorf("%s: status %d, want %d", name, got, row.status)
		}
	}
	s := newSite(t, login.Config{ClientIP: keyfuncs.OrSkip(keyfuncs.Header("X-Real-Ip"))}) // all share the address ""
	if s.want(s.flood(25, "alice"), "map[401:5 429:20]"); s.last.Load().Address != "" {
		t.Errorf("%+v", s.last.Load())
	}
}

func TestARequestWithAnotherMethodIsLimitedOnlyIfItHasABody(t *testing.T) {
	s := newSite(t, login.Config{})
	page := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1"}
	s.want(many(100, func(i int) int {
		page.method = []string{http.MethodHead, http.MethodGet}[i%2]
		return s.serve(page, 200)
	}), "map[200:100]")
	hidden := form("203.0.113.1", "alice")
	hidden.method = http.MethodGet
	s.want(many(7, func(int) int { return s.serve(hidden, 401) }), "map[401:5 429:2]")
	s = newSite(t, login.Config{Methods: []string{"PUT", "GET"}})
	s.want(many(25, func(int) int { return s.serve(page, 200) }), "map[400:20 429:5]")
	page.method = http.MethodHead // routers send it to the handlers of GET
	s.want(many(5, func(int) int { return s.serve(page, 200) }), "map[429:5]")
}

// unreadable is a request whose body cannot be read.
type unreadable struct{ *request }

func (unreadable) Body(int) ([]byte, error) { return nil, errGone }

// The handler may find a username in the body that no source reads.
func TestARequestWithABodyIsAnAttemptWhateverTheSourcesRead(t *testing.T) {
	s := newSite(t, login.Config{Sources: []core.KeyFunc{login.BasicUser()}})
	r := form("203.0.113.1", "alice")
	r.method = http.MethodPut
	s.want(many(21, func(int) int { return s.serve(r, http.StatusOK) }), "map[400:20 429:1]")
	r.peer = "203.0.113.2"
	if d := s.guard.Check(unreadable{r}); d.Allowed {
		t.Errorf("a body that cannot be read: %v", d)
	}
}

// call is a remote procedure call, which has no body.
type call struct{ *request }

func (r call) Body(int) ([]byte, error) { return nil, requestlog.ErrNoBody }

func (r call) Value(key any) any {
	if key == (requestlog.NoBodyKey{}) {
		return requestlog.ErrNoBody
	}
	return nil
}

// The client is told that the field is read from bodies only, not that the server has failed.
func TestAFieldIsNotReadFromARemoteProcedureCall(t *testing.T) {
	s := newSite(t, login.Config{Log: slog.New(slog.DiscardHandler)})
	d := s.guard.Check(call{form("203.0.113.1", "alice")})
	var bad *core.BadRequestError
	if !errors.As(d.Err, &bad) || !strings.Contains(bad.Detail, "use a key function that reads the message") {
		t.Errorf("the attempt ends with %v, %v", d, d.Err)
	}
}
