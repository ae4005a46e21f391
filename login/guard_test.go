package login_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/keyfuncs"
	"github.com/floodgate-go/floodgate/login"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is a request as an adapter would make it.
type request struct {
	ctx    context.Context
	method string
	peer   string
	header http.Header
	body   string
}

func (r *request) Context() context.Context          { return r.ctx }
func (r *request) Method() string                    { return r.method }
func (r *request) Path() string                      { return "/login" }
func (r *request) Route() string                     { return "/login" }
func (r *request) RemoteAddr() string                { return r.peer + ":4711" }
func (r *request) HeaderValues(name string) []string { return r.header.Values(name) }
func (r *request) Query(string) (string, bool)       { return "", false }
func (r *request) Value(any) any                     { return nil }

func (r *request) Cookie(name string) (string, bool) {
	for _, c := range (&http.Request{Header: r.header}).Cookies() {
		if c.Name == name {
			return c.Value, true
		}
	}
	return "", false
}

func (r *request) Body(n int) ([]byte, error) { return []byte(r.body[:min(n, len(r.body))]), nil }

func form(ip, user string) *request {
	return &request{
		ctx: context.Background(), method: http.MethodPost, peer: ip,
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
		body:   url.Values{"username": {user}, "password": {"x"}}.Encode(),
	}
}

// site is a login form: everybody's password is right where the test says so.
type site struct {
	t       *testing.T
	clock   *storetest.Clock
	guard   *login.Guard
	reached atomic.Int64 // attempts that have reached the handler
}

var secret = []byte(strings.Repeat("s", 32))

func newSite(t *testing.T, c login.Config) *site {
	t.Helper()
	s := &site{t: t, clock: storetest.NewClock(time.Unix(1_764_000_000, 0))}
	c.Clock = s.clock.Now
	if c.Field == "" && c.Sources == nil {
		c.Field = "username"
	}
	guard, err := login.NewGuard(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
	})
	s.guard = guard
	return s
}

// serve is what an adapter does. The handler answers with status.
func (s *site) serve(r *request, status int) int {
	d := s.guard.Check(r)
	if !d.Allowed {
		return s.guard.Deny(r, d).Status
	}
	s.reached.Add(1)
	if d.NeedsOutcome() {
		s.guard.Settle(r, d, core.Outcome{Status: status})
	}
	return status
}

func (s *site) wrong(ip, user string) int { return s.serve(form(ip, user), http.StatusUnauthorized) }
func (s *site) right(ip, user string) int { return s.serve(form(ip, user), http.StatusOK) }

// many counts statuses.
func many(n int, f func(i int) int) string {
	counts := map[int]int{}
	for i := range n {
		counts[f(i)]++
	}
	return fmt.Sprint(counts)
}

func (s *site) want(got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("statuses %s, want %s", got, want)
	}
}

// ip returns the i-th address of many.
func ip(i int) string { return fmt.Sprintf("198.51.%d.%d", i/250, 1+i%250) }

func (s *site) withCookie(r *request, user string) *request {
	s.t.Helper()
	c, err := s.guard.DeviceCookie(user)
	if err != nil {
		s.t.Fatal(err)
	}
	r.header.Add("Cookie", c.Name+"="+c.Value)
	return r
}

// CASES 80: guesses all at once get no further than one by one.
func TestABurstOfGuesses(t *testing.T) {
	s := newSite(t, login.Config{Attempts: core.PerMinute(1000)})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() { s.wrong("203.0.113.1", "alice") })
	}
	wg.Wait()
	if n := s.reached.Load(); n != 5 {
		t.Errorf("%d guesses reached the handler, want 5", n)
	}
}

// CASES 79: what is a success, a failure, and neither.
func TestOutcomes(t *testing.T) {
	for status, fails := range map[int]bool{200: false, 204: false, 302: false, 400: true, 401: true, 403: true, 422: true, 500: false, 503: false, 101: false} {
		s := newSite(t, login.Config{})
		got := many(8, func(int) int { return s.serve(form("203.0.113.1", "alice"), status) })
		want := fmt.Sprintf("map[%d:8]", status)
		if fails {
			want = fmt.Sprint(map[int]int{status: 5, 429: 3})
		}
		s.want(got, want)
	}
	// 5xx forgets nothing: four failures, a server error, one failure.
	s := newSite(t, login.Config{})
	for _, status := range []int{401, 401, 401, 401, 500, 401} {
		s.serve(form("203.0.113.1", "alice"), status)
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")

	// 82: a panic is a failure.
	s = newSite(t, login.Config{})
	for range 5 {
		r := form("203.0.113.1", "alice")
		d := s.guard.Check(r)
		s.guard.Settle(r, d, core.Outcome{Status: 500, Panicked: true})
		s.guard.Settle(r, d, core.Outcome{Status: 200}) // does nothing
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[429:1]")
}

// CASES 79: a redirect back to the form is a failure.
func TestARedirectBackFails(t *testing.T) {
	s := newSite(t, login.Config{Success: login.RedirectFails("/login")})
	location := "https://example.org/login?error=1#form"
	try := func() bool {
		r := form("203.0.113.1", "alice")
		d := s.guard.Check(r)
		if d.Allowed {
			s.guard.Settle(r, d, core.Outcome{Status: 302, Header: func(string) string { return location }})
		}
		return d.Allowed
	}
	for i := range 7 {
		if got := try(); got != (i < 5) {
			t.Errorf("attempt %d: allowed %v", i, got)
		}
	}
	s.clock.Advance(time.Hour)
	location = "/home"
	for range 10 {
		if !try() {
			t.Fatal("a redirect elsewhere counts")
		}
	}
}

// CASES 84, 85: a success forgets the failures of that address for that
// account, and nothing of the address's own.
func TestWhatASuccessForgets(t *testing.T) {
	s := newSite(t, login.Config{})
	for range 4 {
		s.wrong("203.0.113.1", "alice")
		s.wrong("203.0.113.2", "alice")
	}
	s.want(many(1, func(int) int { return s.right("203.0.113.1", "alice") }), "map[200:1]")
	s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
	s.want(many(2, func(int) int { return s.wrong("203.0.113.2", "alice") }), "map[401:1 429:1]")

	got := many(60, func(i int) int {
		if i%20 == 19 {
			return s.right("203.0.113.9", "mallory")
		}
		return s.wrong("203.0.113.9", fmt.Sprint("victim", i))
	})
	s.want(got, "map[200:1 401:19 429:40]")
}

// CASES 86: one address, 1000 accounts.
func TestOneAddressOnManyAccounts(t *testing.T) {
	s := newSite(t, login.Config{})
	s.want(many(1000, func(i int) int { return s.wrong("203.0.113.1", fmt.Sprint("u", i)) }), "map[401:20 429:980]")
}

// CASES 87, 88, 91: 1000 addresses, one account: at most 100 guesses an hour
// reach the handler, and the owner still gets in, by a cookie or from where the
// owner has logged in before.
func TestManyAddressesOnOneAccount(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[200:1]")
	const guesses = 3000
	var reached []time.Time
	for i := range guesses {
		if s.wrong(ip(i), "alice") == http.StatusUnauthorized {
			reached = append(reached, s.clock.Now())
		}
		if i%500 == 499 {
			if got := s.right("192.0.2.1", "alice"); got != http.StatusOK {
				t.Errorf("the owner, at home, after %d guesses: %d", i, got)
			}
			if got := s.serve(s.withCookie(form("192.0.2.77", "alice"), "Alice "), http.StatusOK); got != http.StatusOK {
				t.Errorf("the owner, with a cookie, after %d guesses: %d", i, got)
			}
			if got := s.right("192.0.2.99", "alice"); got != http.StatusTooManyRequests {
				t.Errorf("a stranger, after %d guesses: %d", i, got)
			}
		}
		s.clock.Advance(3 * time.Second)
	}
	for i, from := range reached {
		n := 0
		for _, at := range reached[i:] {
			if at.Sub(from) < time.Hour {
				n++
			}
		}
		if n > 100 {
			t.Fatalf("%d guesses in one hour", n)
		}
	}
	if n := len(reached); n < 200 {
		t.Errorf("%d guesses in two and a half hours: the account is never free again", n)
	}
}

// The known address has limits of its own, and so has a known browser.
func TestAKnownAddressIsLimitedToo(t *testing.T) {
	s := newSite(t, login.Config{})
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(8, func(int) int { return s.wrong("192.0.2.1", "alice") }), "map[401:5 429:3]")
	s.clock.Advance(15 * 24 * time.Hour)
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]") // forgotten by now
}

func TestForgetAddresses(t *testing.T) {
	s := newSite(t, login.Config{ForgetAddresses: true})
	s.right("192.0.2.1", "alice")
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	s.want(many(1, func(int) int { return s.right("192.0.2.1", "alice") }), "map[429:1]")
}

// An attacker who logs in to an account of their own becomes known for that one
// alone.
func TestAnAttackersOwnAccountHelpsNobody(t *testing.T) {
	s := newSite(t, login.Config{Secrets: [][]byte{secret}})
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	before := s.reached.Load()
	for i := range 100 {
		s.right(ip(300+i), "mallory")
		s.wrong(ip(300+i), "alice")
		s.serve(s.withCookie(form(ip(300+i), "alice"), "mallory"), http.StatusUnauthorized)
	}
	if n := s.reached.Load() - before; n != 100 { // the logins to mallory
		t.Errorf("%d attempts reached the handler, want 100", n)
	}
}

// The waits of one address on one account grow, attempts during a wait do not
// make it longer, and strikes decay.
func TestEscalation(t *testing.T) {
	s := newSite(t, login.Config{AccountFailures: core.PerHour(1000)})
	for _, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour} {
		s.want(many(5, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5]")
		for range 10 {
			if got := s.wrong("203.0.113.1", "alice"); got != http.StatusTooManyRequests {
				t.Fatalf("during the wait: %d", got)
			}
		}
		d := s.guard.Check(form("203.0.113.1", "alice"))
		if d.RetryAfter != want {
			t.Fatalf("wait of %v, want %v", d.RetryAfter, want)
		}
		s.clock.Advance(want)
	}
	s.clock.Advance(24 * time.Hour)
	many(5, func(int) int { return s.wrong("203.0.113.1", "alice") })
	if d := s.guard.Check(form("203.0.113.1", "alice")); d.RetryAfter != 30*time.Second {
		t.Errorf("a day later: %v", d.RetryAfter)
	}
}

// CASES 90: device cookies that are not what they should be.
func TestDeviceCookies(t *testing.T) {
	old := []byte(strings.Repeat("o", 32))
	s := newSite(t, login.Config{Secrets: [][]byte{secret, old}, Attempts: core.PerMinute(10_000)})
	other := newSite(t, login.Config{Secrets: [][]byte{secret}, Name: "other"})
	rotated := newSite(t, login.Config{Secrets: [][]byte{old}})
	stranger := newSite(t, login.Config{Secrets: [][]byte{[]byte(strings.Repeat("x", 32))}})
	cookie := func(s *site, user string) string {
		c, err := s.guard.DeviceCookie(user)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Secure || !c.HttpOnly || c.Path != "/" || c.SameSite != http.SameSiteLaxMode || c.Valid() != nil || strings.Contains(c.Value, user) {
			t.Errorf("%+v", c)
		}
		return c.Value
	}
	many(200, func(i int) int { return s.wrong(ip(i), "alice") }) // strangers are refused now
	n := 500
	admitted := func(value string) bool {
		n++
		r := form(ip(n), "alice")
		r.header.Add("Cookie", login.DefaultCookieName+"="+value)
		return s.serve(r, http.StatusOK) == http.StatusOK
	}
	good := cookie(s, "alice")
	if !admitted(good) || !admitted(cookie(s, " ALICE ")) || !admitted(cookie(rotated, "alice")) {
		t.Error("a good cookie is not believed")
	}
	raw, _ := base64.RawURLEncoding.DecodeString(good)
	for name, value := range map[string]string{
		"empty": "", "text": "nonsense", "of another account": cookie(s, "bob"), "of another guard": cookie(other, "alice"),
		"of another secret": cookie(stranger, "alice"), "twice": good + good, "cut": good[:len(good)-1], "padded": good + "=",
	} {
		if admitted(value) {
			t.Errorf("a cookie %s is believed", name)
		}
	}
	for i := range raw {
		forged := append([]byte(nil), raw...)
		forged[i] ^= 1
		if admitted(base64.RawURLEncoding.EncodeToString(forged)) {
			t.Errorf("a cookie with byte %d changed is believed", i)
		}
	}
	// A thousand failures with one cookie: its own quota, then a stranger.
	reached := s.reached.Load()
	for range 1000 {
		n++
		r := form(ip(n), "alice")
		r.header.Add("Cookie", login.DefaultCookieName+"="+good)
		s.serve(r, http.StatusUnauthorized)
	}
	if got := s.reached.Load() - reached; got != 5 {
		t.Errorf("%d guesses with one cookie reached the handler, want 5", got)
	}
	if !admitted(cookie(s, "alice")) {
		t.Error("another cookie of the account is not believed any more")
	}
	s.clock.Advance(login.DefaultCookieFor - time.Second)
	many(200, func(i int) int { return s.wrong(ip(1600+i), "alice") })
	if !admitted(good) {
		t.Error("not believed a second before it expires")
	}
	s.clock.Advance(time.Second)
	if admitted(good) {
		t.Error("believed after it has expired")
	}
	if _, err := newSite(t, login.Config{}).guard.DeviceCookie("alice"); !errors.Is(err, core.ErrConfig) {
		t.Errorf("without secrets: %v", err)
	}
}

// CASES 74, 76: several sources and spellings charge one account.
func TestSourcesAndSpellings(t *testing.T) {
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
	const urlencoded, json = "application/x-www-form-urlencoded", "application/json"
	s := newSite(t, c)
	all := []*request{
		form("203.0.113.1", "alice"), form("203.0.113.1", " ALICE "), form("203.0.113.1", "ａｌｉｃｅ"),
		post(urlencoded, "email=alice"), post(urlencoded, "user%5Bname%5D=alice"), post(json, `{"username":"Alice"}`),
		post(json, `{"user":{"name":"alice"}}`), post("text/plain", "", "Authorization", basic),
		post(urlencoded, "username=alice&email=ALICE", "Authorization", basic),
	}
	for i, r := range all {
		if got, want := s.serve(r, 401), map[bool]int{true: 401, false: 429}[i < 5]; got != want {
			t.Errorf("request %d: %d, want %d", i, got, want)
		}
	}
	for name, r := range map[string]*request{
		"NUL": form("203.0.113.1", "alice\x00"), "zero width": form("203.0.113.1", "alice\u200b"), "another": form("203.0.113.1", "bob"),
		"no UTF-8": form("203.0.113.1", "alice\xff"),
	} {
		if got := s.serve(r, 401); got != 401 {
			t.Errorf("%s: %d, want an account of its own", name, got)
		}
	}
	if login.Normalize("e\u0301") != login.Normalize("É") {
		t.Error("composed and decomposed characters differ")
	}
	for name, r := range map[string]*request{
		"two that differ":        post(urlencoded, "username=alice&email=bob"),
		"form and Basic":         post(urlencoded, "username=bob", "Authorization", basic),
		"none":                   post(urlencoded, "password=x"),
		"white space":            form("203.0.113.1", " \t "),
		"twice":                  post(urlencoded, "username=a&username=b"),
		"two Authorization":      post(urlencoded, "username=alice", "Authorization", basic, "Authorization", basic),
		"another type":           post("text/plain", "username=alice"),
		"malformed":              post(json, `{"username":`),
		"Basic without a colon":  post("text/plain", "", "Authorization", "Basic YWxpY2U="),
		"Basic that is not":      post("text/plain", "", "Authorization", "Basic %%%"),
		"another authentication": post("text/plain", "", "Authorization", "Bearer x"),
	} {
		reached := s.reached.Load()
		if got := s.serve(r, 401); got != http.StatusBadRequest || s.reached.Load() != reached {
			t.Errorf("%s: %d, want 400", name, got)
		}
	}
	c.AllowUnnamed = true
	s = newSite(t, c)
	s.want(many(7, func(int) int { return s.serve(post(urlencoded, "password=x"), 401) }), "map[401:5 429:2]")
}

// CASES 75: requests without a name are charged to their address.
func TestNamelessRequestsAreChargedToTheAddress(t *testing.T) {
	s := newSite(t, login.Config{})
	r := form("203.0.113.1", "")
	s.want(many(25, func(int) int { return s.serve(r, 401) }), "map[400:20 429:5]")
}

// POST alone, and whatever else has a body: CASES 45.
func TestMethods(t *testing.T) {
	s := newSite(t, login.Config{})
	page := &request{ctx: context.Background(), method: http.MethodGet, peer: "203.0.113.1"}
	s.want(many(100, func(int) int { return s.serve(page, 200) }), "map[200:100]")
	hidden := form("203.0.113.1", "alice")
	hidden.method = http.MethodGet
	s.want(many(7, func(int) int { return s.serve(hidden, 401) }), "map[401:5 429:2]")
	s = newSite(t, login.Config{Methods: []string{"PUT", "GET"}})
	s.want(many(25, func(int) int { return s.serve(page, 200) }), "map[400:20 429:5]")
}

// CASES 87: the soft limit.
func TestSuspicion(t *testing.T) {
	var seen []int64
	verdict := login.Verdict{}
	s := newSite(t, login.Config{
		AccountFailures: core.PerHour(10),
		OnSuspicion: func(r core.Request, sus login.Suspicion) login.Verdict {
			if r.Method() != http.MethodPost || sus.Username != "alice" || sus.Limit != 10 || !sus.Suspicious {
				t.Errorf("%+v", sus)
			}
			seen = append(seen, sus.Failures)
			return verdict
		},
	})
	for i := range 7 {
		s.wrong(ip(i), "alice")
	}
	if fmt.Sprint(seen) != "[5 6]" {
		t.Errorf("asked at %v failures, want 5 and 6", seen)
	}
	// The handler sees it too.
	r := form(ip(50), "alice")
	d := s.guard.Check(r)
	if got := login.SuspicionOf(d); !got.Suspicious || got.Failures != 7 {
		t.Errorf("the handler sees %+v", got)
	}
	s.guard.Settle(r, d, core.Outcome{Status: 200})
	if got := login.SuspicionOf(core.Decision{}); got.Suspicious {
		t.Error("suspicion of nothing")
	}
	// A refusal is the application's, and costs nothing.
	verdict.Refuse = &core.Denial{Status: 403, Body: []byte("captcha")}
	reached := s.reached.Load()
	for i := range 30 {
		r := form(ip(60+i), "alice")
		d := s.guard.Check(r)
		if d.Allowed || string(s.guard.Deny(r, d).Body) != "captcha" {
			t.Fatalf("%+v", d)
		}
		for _, h := range d.AppendHeaders(nil) {
			if h.Name == "Retry-After" {
				t.Error("a captcha is not asked for later")
			}
		}
	}
	verdict.Refuse = nil
	if s.wrong(ip(99), "alice") != 401 || s.reached.Load() != reached+1 {
		t.Error("refused attempts were counted")
	}
	// Who is known is not suspected.
	seen = nil
	s.right(ip(50), "alice")
	for i := range 10 {
		s.wrong(ip(200+i), "alice")
	}
	seen = nil
	s.right(ip(50), "alice")
	if len(seen) != 0 {
		t.Errorf("asked about a known address: %v", seen)
	}
}

// A hook that panics has made no attempt.
func TestAPanicOfOnSuspicion(t *testing.T) {
	panics := false
	s := newSite(t, login.Config{AccountFailures: core.PerHour(4), OnSuspicion: func(core.Request, login.Suspicion) login.Verdict {
		if panics {
			panic("hook")
		}
		return login.Verdict{}
	}})
	s.wrong(ip(0), "alice")
	s.wrong(ip(1), "alice")
	panics = true
	for i := range 10 {
		func() {
			defer func() { _ = recover() }()
			s.wrong(ip(10+i), "alice")
		}()
	}
	panics = false
	s.want(many(3, func(i int) int { return s.wrong(ip(30+i), "alice") }), "map[401:2 429:1]")
}

func TestSupport(t *testing.T) {
	s := newSite(t, login.Config{})
	ctx := context.Background()
	s.right("192.0.2.7", "alice")
	many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
	many(200, func(i int) int { return s.wrong(ip(i), "alice") })
	st, err := s.guard.Status(ctx, "ALICE", "203.0.113.1")
	if err != nil || !st.Account.Exceeded || !st.AddressAccount.Exceeded || st.AddressAccount.RetryAfter != 30*time.Second || st.Address.Remaining != 15 || st.KnownAddress || st.RetryAfter < 30*time.Second {
		t.Errorf("%+v, %v", st, err)
	}
	if st, err := s.guard.Status(ctx, "alice", "192.0.2.7"); err != nil || !st.KnownAddress || st.RetryAfter != 0 {
		t.Errorf("at home: %+v, %v", st, err)
	}
	if st, err := s.guard.Status(ctx, "bob", "2001:db8::1"); err != nil || st.RetryAfter != 0 || st.Account.Remaining != 100 {
		t.Errorf("another account: %+v, %v", st, err)
	}
	for range 2 { // again and again
		if err := s.guard.Unblock(ctx, "Alice"); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(5 * time.Second) // as another instance may need
		s.want(many(6, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:1]")
		s.want(many(1, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[429:1]")
	}
}

// CASES 93, 94: events have neither names nor addresses, unless asked for.
func TestEvents(t *testing.T) {
	for _, identify := range []bool{false, true} {
		var events []login.Event
		s := newSite(t, login.Config{Identify: identify, Secrets: [][]byte{secret}, OnEvent: func(e login.Event) { events = append(events, e) }})
		many(6, func(int) int { return s.wrong("203.0.113.1", "alice") })
		s.right("203.0.113.2", "Alice")
		s.serve(s.withCookie(form("203.0.113.1", "alice"), "alice"), 200)
		kinds := ""
		for _, e := range events {
			kinds += e.Kind.String() + e.Trust + " "
			if text := fmt.Sprintf("%+v", e); identify != (strings.Contains(text, "alice") && strings.Contains(text, "203.0.113")) {
				t.Errorf("identify %v: %s", identify, text)
			}
			if len(e.Account) != 32 || e.Account != events[0].Account || len(e.Address) != 32 {
				t.Errorf("%+v", e)
			}
		}
		if kinds != "failed failed failed failed failed refused succeeded succeededdevice " || events[5].Rule != "address-account" || events[5].RetryAfter != 30*time.Second {
			t.Errorf("events: %s, %+v", kinds, events[5])
		}
		if events[0].Address == events[6].Address || events[0].Address != events[7].Address {
			t.Error("addresses are not told apart")
		}
	}
}

// CASES 92: nothing depends on whether the account exists, and no refusal says
// which limit it is.
func TestRefusalsAreAlike(t *testing.T) {
	s := newSite(t, login.Config{})
	answers := func(user string) string {
		text := ""
		for i := range 130 {
			r := form(ip(i), user)
			d := s.guard.Check(r)
			text += fmt.Sprint(d.AppendHeaders(nil))
			if !d.Allowed {
				text += fmt.Sprint(s.guard.Deny(r, d))
			} else {
				s.guard.Settle(r, d, core.Outcome{Status: 401})
			}
		}
		return text
	}
	a := answers("alice")
	s.clock.Advance(2 * time.Hour)
	if b := answers("nobody"); a != b {
		t.Error("answers differ")
	}
	if strings.Contains(a, "account") || strings.Contains(a, "Ratelimit") {
		t.Errorf("a refusal tells: %s", a)
	}
}

// broken is a shared store that does not answer.
type broken struct{ core.Store }

func (broken) Bind(string, []core.StoreRule) (core.Bound, error) { return brokenBound{}, nil }

type brokenBound struct{ core.Bound }

var errGone = errors.New("connection refused")

func (brokenBound) Take(context.Context, *core.Batch) error   { return errGone }
func (brokenBound) Refund(context.Context, *core.Batch) error { return errGone }
func (brokenBound) Reset(context.Context, *core.Batch) error  { return errGone }

// CASES 170: while the store does not answer, the process counts.
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	s := newSite(t, login.Config{Store: broken{}})
	s.want(many(8, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[401:5 429:3]")
	s.want(many(1, func(int) int { return s.right("203.0.113.2", "alice") }), "map[200:1]")
	s = newSite(t, login.Config{Store: broken{}, Resilience: resilient.Config{Meanwhile: resilient.Closed}})
	s.want(many(3, func(int) int { return s.wrong("203.0.113.1", "alice") }), "map[503:3]")
}

// eventual says of itself that it is.
type eventual struct{ core.Store }

func (eventual) EventuallyConsistent() bool { return true }

func TestWrongConfigurationIsNamed(t *testing.T) {
	memory := core.Must(core.NewMemory(core.MemoryConfig{}))
	_, err := login.NewGuard(login.Config{
		Sources: []core.KeyFunc{nil}, Secrets: [][]byte{[]byte("short")}, CookieFor: -1, KnownFor: time.Millisecond, SuspiciousAfter: -3,
		Methods: []string{}, Resilience: resilient.Config{Meanwhile: resilient.Open}, CookieName: "a b", Store: eventual{memory}, // CASES 186
	})
	for _, want := range []string{"Sources[0]", "Secrets[0]: 5 bytes", "CookieFor: -1ns", "KnownFor: 1ms", "SuspiciousAfter: -3", "Methods: none", "Meanwhile: open", `CookieName: "a b"`, "Store: login_test.eventual: is eventually consistent"} {
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	for want, c := range map[string]login.Config{
		"Field":                              {},
		"ForgetAddresses is set":             {Field: "u", KnownFor: time.Hour, ForgetAddresses: true},
		"InsecureCookie is set":              {Field: "u", InsecureCookie: true},
		"Secrets: none":                      {Field: "u", Secrets: [][]byte{}},
		`Methods[0]: ""`:                     {Field: "u", Methods: []string{""}},
		`(address).Limits[0]`:                {Field: "u", Attempts: core.PerMinute(-1)},
		"Resilience: floodgate":              {Field: "u", Store: broken{}, Resilience: resilient.Config{Failures: -1}},
		"Store: *resilient.Store: is eventu": {Field: "u", Store: core.Must(resilient.New(eventual{memory}, resilient.Config{}))},
	} {
		_, err := login.NewGuard(c)
		if !errors.Is(err, core.ErrConfig) || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), strings.ReplaceAll(want, `"`, "")) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	g, err := login.NewGuard(login.Config{Field: "u", Store: eventual{memory}, AllowEventual: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Close()
}

// What the guard costs beside parsing the body, which is a part of it here.
func BenchmarkGuard(b *testing.B) {
	g := core.Must(login.NewGuard(login.Config{Field: "username", Secrets: [][]byte{secret}, Attempts: core.PerMinute(core.MaxQuota), Failures: core.Limit{Quota: core.MaxQuota, Window: time.Minute, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second}}, AccountFailures: core.PerHour(core.MaxQuota)}))
	defer g.Close() //nolint:errcheck // of no interest any more
	r := form("203.0.113.1", "alice")
	field := keyfuncs.PostField("username", keyfuncs.Normalize(func(s string) (string, error) { return login.Normalize(s), nil }))
	b.Run("the field alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = field(nil, r)
		}
	})
	for name, status := range map[string]int{"a failure": 401, "a success": 200} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d := g.Check(r)
				g.Settle(r, d, core.Outcome{Status: status})
			}
		})
	}
}
