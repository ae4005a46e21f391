package policy_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	httplimit "github.com/floodgate-go/floodgate/adapters/nethttp"
	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// folderWith returns a folder with files.
func folderWith(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// withTable returns a site under a policy file and a table customers of quotas.
func withTable(t *testing.T, text, table string, opts ...policy.Option) *site {
	t.Helper()
	dir := folderWith(t, map[string]string{"customers": table})
	return newSite(t, text, append(opts, policy.Folder(dir))...)
}

// passes counts the requests of a key that are let through, of so many.
func (s *site) passes(of int, key string, opts ...option) (n int) {
	for range of {
		if s.send("GET", "/", append(opts, header("X-Key", key))...).Code == http.StatusOK {
			n++
		}
	}
	return n
}

func TestATableHasTheQuotasOfSingleKeys(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {file: customers}}]`,
		"ann: 5\nbob: unlimited\nkim: 3/m\nout: 0\n\"\": 1\n")
	for key, want := range map[string]int{"ann": 5, "bob": 9, "kim": 3, "out": 0, "": 1, "eve": 2, "ANN": 2, "unlimited": 2, "*": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%q: %d pass, want %d", key, got, want)
		}
	}
	s.pass(time.Minute)
	if got := s.passes(9, "ann"); got != 5 {
		t.Errorf("in the next minute %d pass, want 5", got)
	}
}

func TestATableNamesLimitsByTheirWindows(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'header["x-key"]', limits: [2/m fixed_window, 4/h fixed_window], quotas: {file: customers}}]`,
		"minute: 3/m\nhour: 1/h\nboth: 4/m, 5/60m\nfree: unlimited\nfreeHour: unlimited/h\n")
	for key, want := range map[string][2]int{"minute": {3, 1}, "hour": {1, 0}, "both": {4, 1}, "free": {9, 9}, "freeHour": {2, 2}, "other": {2, 2}} {
		if got := [2]int{s.passes(9, key), 0}; got[0] != want[0] {
			t.Errorf("%s: %d pass, want %d", key, got[0], want[0])
		}
	}
	s.pass(time.Minute)
	for key, want := range map[string]int{"minute": 1, "hour": 0, "both": 1, "free": 9, "freeHour": 2, "other": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass in the second minute, want %d", key, got, want)
		}
	}
}

// Keys of the fallback are others than those of the key: a client cannot take
// the quota of an address by its name.
func TestATableOfKeysWithAFallback(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'header["x-key"]', fallback: ip, limits: 1/m, quotas: {file: customers}}]`,
		"10.0.0.1: 2\n\"?:10.0.0.2\": 3\n\"??:10.0.0.3\": 4\n")
	for _, c := range []struct {
		address, key string
		want         int
	}{{"10.0.0.1", "", 1}, {"10.0.0.2", "", 3}, {"10.9.9.9", "10.0.0.1", 2}, {"10.9.9.9", "?:10.0.0.2", 1}, {"10.9.9.9", "?:10.0.0.3", 4}, {"10.0.0.3", "", 1}} {
		if got := s.passes(9, c.key, from(c.address)); got != c.want {
			t.Errorf("%q from %s: %d pass, want %d", c.key, c.address, got, c.want)
		}
	}
}

func TestATableForTiers(t *testing.T) {
	s := withTable(t, `
trusted-headers: [X-Plan]
policies:
  - name: a
    key: header["x-key"]
    missing: own-bucket
    tier: header["x-plan"]
    tiers: {default: 1/m, paid: [3/m fixed_window, 4/h fixed_window], staff: unlimited}
    quotas: {file: customers}
`, "ann: 2/m\nbob: 5/m, 6/h\nkim: 7/h\n")
	for _, c := range []struct {
		plan, key string
		want      int
	}{{"", "ann", 2}, {"", "bob", 5}, {"", "kim", 1}, {"paid", "ann", 2}, {"paid", "bob", 5}, {"paid", "kim", 3}, {"staff", "ann", 9}, {"paid", "eve", 3}} {
		if got := s.passes(9, c.key, header("X-Plan", c.plan)); got != c.want {
			t.Errorf("%s, tier %q: %d pass, want %d", c.key, c.plan, got, c.want)
		}
	}
}

func TestAQuotaByAnExpression(t *testing.T) {
	s := newSite(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quota: 'header["x-key"] == "ann" ? 5 : header["x-key"] == "kim" ? 2.9 : header["x-quota"]'}]`)
	for _, c := range []struct {
		key, quota string
		want       int
	}{{"ann", "", 5}, {"kim", "", 2}, {"bob", "", 2}, {"carl", "3/m", 3}, {"dora", "unlimited", 9}, {"emil", "4", 4}, {"finn", "0", 0}} {
		if got := s.passes(9, c.key, header("X-Quota", c.quota)); got != c.want {
			t.Errorf("%s with %q: %d pass, want %d", c.key, c.quota, got, c.want)
		}
	}
	for _, bad := range []string{"many", "5/h", "5/m, 6/h", "-1", "9999999999", strings.Repeat("1", 2000), "1e3", "3/m token_bucket"} {
		s.expect(400, "GET", "/", header("X-Key", bad[:1]+" "+bad[max(0, len(bad)-8):]), header("X-Quota", bad))
	}
	for _, bad := range []string{"0/0", "-1", "2147483648", "1e300", "false"} {
		s = newSite(t, `policies: [{name: a, limits: 2/m, quota: 'method == "GET" ? `+bad+` : 2'}]`)
		s.expect(400, "GET", "/")
		s.expect(200, "POST", "/")
	}
	s = newSite(t, `policies: [{name: a, limits: 2/m, quota: 'int(query["n"])'}]`)
	s.expect(400, "GET", "/")
	s.expect(400, "GET", "/?n=x")
	s.expect(200, "GET", "/?n=4")
	s.expect(429, "GET", "/?n=1")
	s = newSite(t, `policies: [{name: a, limits: 2/m, quota: 'method == "GET" ? 1 : nil'}]`)
	s.expect(200, "GET", "/")
	s.expect(429, "GET", "/")
	s.expect(200, "POST", "/")
}

func TestATableGoesBeforeTheExpression(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'header["x-key"]', limits: [1/m fixed_window, 8/h fixed_window], quota: 'header["x-quota"]', quotas: {file: customers}}]`, "ann: 3/m\nbob: 5/h\n")
	for _, c := range []struct {
		key, quota string
		want       int
	}{{"ann", "4/m, 2/h", 2}, {"bob", "4/m", 4}, {"kim", "2/m", 2}, {"eve", "", 1}} {
		if got := s.passes(9, c.key, header("X-Quota", c.quota)); got != c.want {
			t.Errorf("%s with %q: %d pass, want %d", c.key, c.quota, got, c.want)
		}
	}
}

// A quota may depend on the body, which is read in a second pass.
func TestAQuotaOfTheBody(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'form["user"]', missing: skip, limits: 1/m, quota: 'form["plan"] == "paid" ? 3 : ""', quotas: {file: customers}}]`, "ann: 2\n")
	for user, want := range map[string]int{"user=ann&plan=paid": 2, "user=bob&plan=paid": 3, "user=kim&plan=none": 1} {
		n := 0
		for range 5 {
			if s.send("POST", "/", body("application/x-www-form-urlencoded", user)).Code == 200 {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d pass, want %d", user, n, want)
		}
	}
}

// Somebody may ask the limiter, and not the Set.
func TestTheLimiterKnowsTheQuotasOfATable(t *testing.T) {
	s := withTable(t, `policies: [{name: a, key: 'header["x-key"]', limits: 2/m fixed_window, quotas: {file: customers}}]`, "ann: 4\nbob: unlimited\n")
	s.mount(limiterOnly{s.set.Limiter()})
	for key, want := range map[string]int{"ann": 4, "bob": 9, "eve": 2} {
		if got := s.passes(9, key); got != want {
			t.Errorf("%s: %d pass, want %d", key, got, want)
		}
	}
}

type limiterOnly struct{ core.Checker }

func TestQuotasOfAKey(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "ann: 5/m\nbob: unlimited\n"})
	s := newSite(t, `
policies:
  - {name: a, key: ip, limits: [2/m, 9/h], quotas: {file: customers}, deny: [10.0.0.1]}
  - {name: b, key: ip, limits: 2/m}
  - {name: c, key: ip, tier: user, tiers: {default: 1/m, paid: [1/s, 3/m]}, quotas: {file: customers}}
`, policy.Folder(dir), policy.WithUser(func(core.Request) string { return "" }))
	for _, c := range []struct {
		rule, key string
		want      []int64
	}{
		{"a", "ann", []int64{5, 9}}, {"a", "bob", []int64{core.Unlimited, core.Unlimited}}, {"a", "eve", nil}, {"a.deny-list", "ann", nil}, {"b", "ann", nil},
		{"c-default", "ann", []int64{5}}, {"c-paid", "ann", []int64{1, 5}},
	} {
		got, err := s.set.QuotasOf(c.rule, c.key)
		if err != nil || len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || got[len(got)-1] != c.want[len(got)-1]) {
			t.Errorf("%s, %s: %v, %v, want %v", c.rule, c.key, got, err, c.want)
		}
		if _, err := s.set.Limiter().Take(t.Context(), 1, core.Hit{Rule: c.rule, Key: c.key, Quotas: got}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.set.QuotasOf("none", "ann"); !errors.Is(err, core.ErrUnknownRule) {
		t.Error(err)
	}
}

func TestExplanationsOfQuotas(t *testing.T) {
	dir := folderWith(t, map[string]string{"customers": "# customers\nann: 50/m\nbob: unlimited\n"})
	s := newSite(t, `
policies:
  - {name: a, key: 'query["k"]', missing: skip, limits: [2/m token_bucket burst=4, 9/h], quota: 'query["q"]', quotas: {file: customers}}
`, policy.Folder(dir))
	for query, want := range map[string]string{
		"k=ann":             "100 at once, and one more every 1.2s <" + filepath.Join(dir, "customers") + ":2>|at most 9 in 1h; the window before counts in part <>",
		"k=bob":             "without a limit, counted in 1m <" + filepath.Join(dir, "customers") + ":3>|without a limit, counted in 1h <" + filepath.Join(dir, "customers") + ":3>",
		"k=eve&q=unlimited": "without a limit, counted in 1m <the field quota>|without a limit, counted in 1h <the field quota>",
		"k=eve&q=7/h":       "4 at once, and one more every 30s <>|at most 7 in 1h; the window before counts in part <the field quota>",
		"k=eve&q=1/m":       "2 at once, and one more every 1m <the field quota>|at most 9 in 1h; the window before counts in part <>",
		"k=eve&q=0/m":       "none at all <the field quota>|at most 9 in 1h; the window before counts in part <>",
		"k=eve":             "4 at once, and one more every 30s <>|at most 9 in 1h; the window before counts in part <>",
		"k=eve&q=a+lot":     `rule a: floodgate: bad request: the quota of the expression "query[\"q\"]": "a lot": `,
		"k=eve&q=1/m,5s":    `rule a: floodgate: bad request: the quota of the expression "query[\"q\"]": "5s": is no quota`,
	} {
		var all []string
		explain := core.HookFuncs{ShouldLimitFunc: func(r core.Request) bool {
			e := s.set.Explain(r)[0]
			if e.Err != nil {
				all = append(all, e.Err.Error())
			}
			for i, q := range e.Rules[0].Quotas {
				all = append(all, policy.Words(q.With(e.Rules[0].Limits[i]))+" <"+q.From+">")
			}
			return false
		}}
		s.handler = httplimit.Middleware(core.Must(core.New(core.Config{Rules: []core.Rule{{Limits: []core.Limit{core.PerSecond(1)}}}, Hooks: explain})))(http.NotFoundHandler())
		s.send("GET", "/?"+query)
		if got := strings.Join(all, "|"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s\nwant %s", query, got, want)
		}
	}
}
