package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/floodgate-go/floodgate/policy"
)

// asProgram in the environment makes the test's binary the program itself.
const asProgram = "FLOODGATE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(interruptible(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// command runs the program.
func command(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	args = append([]string{}, args...) // for nil, cobra takes the arguments of the process
	code = run(t.Context(), args, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// expect runs it and says what it is to answer.
func expect(t *testing.T, want int, in string, args ...string) (out, errs string) {
	t.Helper()
	code, out, errs := command(t, in, args...)
	if code != want {
		t.Errorf("floodgate %q: exit code %d, want %d\n%s%s", args, code, want, out, errs)
	}
	return out, errs
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const limits = `
store: {redis: {address: "127.0.0.1:1", password: {env: NOT_IN_THE_ENVIRONMENT}}}
policies:
  - name: login
    match: {methods: [POST], paths: [/login]}
    key: form["username"]
    missing: own-bucket
    limits: [5/m fixed_window, 20/h token_bucket burst=2]
  - name: api
    key: header["x-api-key"]
    fallback: ip
    tiers: {default: 100/m, staff: unlimited}
  - name: users
    key: user
    missing: skip
    limits: 9/m
    dry-run: true
    deny: [203.0.113.0/24]
`

// A person sees the line of a mistake with a caret, in colours.
func TestCheckForAPerson(t *testing.T) {
	good, bad := file(t, "good.yaml", limits), file(t, "bad.yaml", "policies:\n  - name: a b\r\n    limits: 1/m\n")
	t.Setenv("CLICOLOR_FORCE", "1")
	out, errs := expect(t, 1, "", "check", good, bad)
	if !strings.Contains(out, "\x1b[32m✓ \x1b[0m"+good) || !strings.HasPrefix(errs, "\x1b[31m✗ \x1b[0m"+bad+":2:11: ") || !strings.HasSuffix(errs, "\x1b[2m\n      - name: a b\n              ^\x1b[0m\n") {
		t.Errorf("%s%q", out, errs)
	}
	// What would change the terminal is escaped, and a long line is left out.
	fits := "policies: [{name: a, key: ip, limits: 1/x}] # "
	fits += strings.Repeat("x", 200-len(fits))
	for text, want := range map[string]string{"a: \x1b[2J": `a: \x1b[2J`, fits: fits, strings.Repeat(" ", 1<<20) + "a: 1": "", "policies: [{name: a, key: ip, limits: 1/x, # " + strings.Repeat("x", 200): ""} {
		if _, errs := expect(t, 1, "", "check", file(t, "bad.yaml", text)); strings.Contains(errs, "\x1b[2J") || want != "" && !strings.Contains(errs, "\n    "+want) || want == "" && strings.Contains(errs, "xxx") {
			t.Errorf("%q", errs)
		}
	}
	t.Setenv("NO_COLOR", "0")
	if out, errs := expect(t, 1, "", "check", good, bad); strings.Contains(out+errs, "\x1b") || strings.Count(errs, "\n") != 1 {
		t.Errorf("with NO_COLOR: %s%s", out, errs)
	}
}

func TestCheck(t *testing.T) {
	good, bad, worse := file(t, "good.yaml", limits), file(t, "bad.yaml", "policies:\n  - name: a b\n    limits: 1/x\n"), file(t, "worse.yaml", "\x1b")
	out, _ := expect(t, 0, "", "check", good)
	if lines := strings.Split(out, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], good+":6:10: policies[0].key: warning: ") ||
		!strings.HasPrefix(lines[1], good+":10:10: policies[1].key: warning: ") || lines[2] != good+": 3 policies, no errors, 2 warnings" {
		t.Errorf("says %q", out)
	}
	open := file(t, "open.yaml", `policies: [{name: a, key: ip, limits: 1/h}, {name: b, key: 'query["x"]', limits: 1/h}]`)
	if out, errs := expect(t, 1, "", "check", "--strict", open, good); !strings.Contains(out, "\n"+open+": 2 policies, no errors, 1 warning\n") ||
		errs != "floodgate: "+open+": 1 warning: --strict treats warnings as errors\n"+good+": 2 warnings: --strict treats warnings as errors\n" {
		t.Errorf("strictly: %q, %q", out, errs)
	}
	fine := file(t, "fine.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"+strings.Repeat(" ", 1<<20-43)) // as long as a file may be
	if out, _ := expect(t, 0, "", "check", "--strict", fine); out != fine+": 1 policy, no errors\n" {
		t.Errorf("says %q", out)
	}
	_, errs := expect(t, 1, "", "check", good, bad, worse)
	if lines := strings.Split(errs, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], bad+":2:11: policies[0].name: ") || !strings.HasPrefix(lines[1], bad+":3:13: ") || !strings.HasPrefix(lines[2], worse+":1:1: ") || strings.Contains(errs, "\x1b") {
		t.Errorf("says:\n%s", errs)
	}
	for _, args := range [][]string{{"check", good + "x"}, {"explain", good + "x"}, {"import", good + "x"}, {"replay", good + "x", "-"}, {"replay", good, good + "x"}} {
		if _, errs := expect(t, exitFailed, "", args...); !strings.HasPrefix(errs, "floodgate: open "+good+"x: no such file") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %q", args, errs)
		}
	}
	hostile := file(t, "a\x1b[2J.yaml", limits)
	for _, path := range []string{file(t, "a\x1b[2J.yaml", "a: 1"), hostile, hostile + "x"} {
		if _, out, errs := command(t, "", "check", path); strings.Contains(out+errs, "\x1b") {
			t.Errorf("a file's name gets to the terminal: %q, %q", out, errs)
		}
	}
}

func TestUsage(t *testing.T) {
	good, bare := file(t, "good.yaml", limits), file(t, "bare.yaml", "policies: [{name: a, key: ip, limits: 1/h}]")
	// The service has no counter in Redis of the policies local and running.
	local := file(t, "local.yaml", limits+"  - {name: local, key: ip, limits: 1/h, counting: local}\n  - {name: running, key: ip, in-flight: 3}\n")
	for _, args := range [][]string{
		{"chek"}, {"check"}, {"check", "--nonsense", good}, {"explain"},
		{"explain", good, "--from", "nonsense"}, {"inspect", good, "--store", "redis://127.0.0.1:1", "--policy", "api", "--key", `"a`},
		{"schema", "x"}, {"replay", good}, {"replay", good, "-", "--format", "pdf"}, {"replay", good, "-", "--honest", "0"}, {"replay", good, "-", "--fields", "a=b"}, {"replay", good, "-", "--fields", "a"}, {"replay", good, "-", "--fields", "time="},
		{"inspect", bare}, {"inspect", local, "--store", "redis://127.0.0.1:1", "--policy", "running"},
		{"explain", good, "--header", "x\xff: a"}, {"top", good, "--store", "127.0.0.1"}, {"top", good, "--store", "http://x"}, {"top", good, "--store", "redis://127.0.0.1:1", "--top", "0"},
		{"top", good, "--store", "redis://127.0.0.1:1", "--key", `"a`}, {"explain", good, "--param", "=5"},
	} {
		_, errs := expect(t, exitUsage, "", args...)
		if !strings.HasPrefix(errs, "usage: ") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %q", args, errs)
		}
		if n := len(args); n > 3 && !strings.Contains(errs, args[n-2]) { // the flag that is wrong
			t.Errorf("%q: %q does not name %s", args, errs, args[n-2])
		}
	}
	for _, verb := range []string{"explain", "inspect", "reset", "grant", "block", "top", "import"} {
		if _, errs := expect(t, exitUsage, "", verb, good, good); !strings.HasPrefix(errs, "usage: accepts 1 arg(s), received 2 (want floodgate "+verb+" FILE") {
			t.Errorf("%s of two files: %q", verb, errs)
		}
	}
	for _, c := range [][3]string{
		{"path", "x y", "a path such as /users/5?a=b"}, {"path", "/x y", "a path such as /users/5?a=b"}, {"path", "login", "a path such as /users/5?a=b"}, {"path", "", "a path such as /users/5?a=b"},
		{"method", "G T", "a method such as GET"}, {"method", "", "a method such as GET"}, {"header", "x", "Name: value"}, {"header", ": x", "Name: value"}, {"header", "x: a\nb", "Name: value"},
		{"param", "id", "name=value"}, {"from", "192.0.2.1:80", "an address such as 192.0.2.1 or 2001:db8::1"},
	} {
		if _, errs := expect(t, exitUsage, "", "explain", good, "--"+c[0], c[1]); errs != fmt.Sprintf("usage: --%s: %q: want %s\n", c[0], c[1], c[2]) {
			t.Errorf("%q: %q", c, errs)
		}
	}
	expect(t, 0, "", "explain", good, "--method", "OPTIONS", "--path", "*")
	want := `want a policy that counts in Redis: login, api, users` + "\n"
	if _, errs := expect(t, exitUsage, "", "inspect", local, "--store", "redis://127.0.0.1:1", "--policy", "local"); !strings.HasSuffix(errs, want) {
		t.Errorf("a local policy: %q, want %q", errs, want)
	}
	if out, _ := expect(t, 0, "", "schema"); out != string(policy.Schema()) {
		t.Error("schema prints something else")
	}
}

// testdata/help.txt has the help texts, with the flags and their defaults.
func TestHelp(t *testing.T) {
	got, _ := expect(t, exitFine, "")
	for _, verb := range strings.Fields("check explain replay schema inspect reset grant block top import") {
		out, _ := expect(t, exitFine, "", verb, "--help")
		got += "\n" + out
	}
	if want, err := os.ReadFile("testdata/help.txt"); err != nil || got != string(want) {
		t.Errorf("%v, the help texts:\n%s\nwant\n%s", err, got, want)
	}
}

func TestExplain(t *testing.T) {
	good := file(t, "good.yaml", limits)
	out, _ := expect(t, 0, "", "explain", good, "--method", "POST", "--path", "/login?x=1", "--header", "X-Api-Key: k\u009b", "--data", "username=bob", "--user", "ann", "--from", "203.0.113.7")
	want := `login: applies: the request meets all conditions of match
  cost 1, counted in the store, for all processes together
  key bob
    5 per 1m (fixed_window)
    20 per 1h (token_bucket, burst 2)
api: applies: the policy has no match conditions
  cost 1, counted in the store, for all processes together
  tier default
  key "k\u009b"
    100 per 1m
users (dry run: denies nothing): applies: the policy has no match conditions
  denied with 403: the list deny has the address, or the list only lacks it
`
	if out != want {
		t.Errorf("says:\n%s\nwant:\n%s", out, want)
	}
	out, _ = expect(t, 0, "", "explain", good, "--method", "POST", "--path", "/login", "--header", "Content-Type: application/json", "--data", `{"username":"bob"}`, "--tier", "staff", "--from", "2001:db8::1")
	want = `login: applies: the request meets all conditions of match
  cost 1, counted in the store, for all processes together
  one counter for all requests without a key
    5 per 1m (fixed_window)
    20 per 1h (token_bucket, burst 2)
api: does not apply: the tier is unlimited
users (dry run: denies nothing): does not apply: the request has no user
`
	if out != want {
		t.Errorf("says:\n%s\nwant:\n%s", out, want)
	}
	reject := file(t, "reject.yaml", `policies: [{name: a, key: 'query["id"]', missing: reject, limits: 1/h}]`)
	if out, _ := expect(t, 0, "", "explain", reject); out != "a: applies: the policy has no match conditions\n  denied with 400: floodgate: bad request: the query parameter \"id\" is missing\n" {
		t.Errorf("of a bad request, it says %q", out)
	}
	for path, applies := range map[string]bool{"//login": true, "/login": true, "/%6cogin/": true, "/a/%2e%2e/login": true, "/loginx": false, "//loginx": false} {
		if out, _ := expect(t, 0, "", "explain", good, "--method", "POST", "--path", path); strings.Contains(out, "login: applies") != applies {
			t.Errorf("%s:\n%s", path, out)
		}
	}
	for from, key := range map[string]string{"2001:db8::1": "?:2001:db8::/64", "10.0.0.1": "?:10.0.0.1"} {
		if out, _ := expect(t, 0, "", "explain", good, "--from", from); !strings.Contains(out, "key "+key) || !strings.Contains(out, "login: does not apply: the method is none of POST") {
			t.Errorf("from %s:\n%s", from, out)
		}
	}
}

// The route, its parameters and the host are given on the command line.
func TestTheRouteAndTheHostOfAnExplanation(t *testing.T) {
	path := file(t, "limits.yaml", `policies: [{name: api, key: 'param["id"]', missing: skip, limits: 1/m}, {name: type, key: 'header["content-type"]', missing: skip, limits: 1/m}]`)
	out, _ := expect(t, 0, "", "explain", path, "--param", "id=a=b")
	if !strings.Contains(out, "  key a=b\n") {
		t.Errorf("explain says %q", out)
	}
	if out, _ = expect(t, 0, "", "explain", path); !strings.Contains(out, `the request has no param["id"]`) || !strings.Contains(out, "type: does not apply") { // without a body, no type
		t.Errorf("explain says %q", out)
	}
	path = file(t, "limits.yaml", `policies: [{name: route, key: route, limits: 1/m}, {name: host, key: 'header["host"]', limits: 1/m}]`)
	if out, _ = expect(t, 0, "", "explain", path, "--route", "/users/{id}", "--header", "Host: shop.test", "--header", "X-Other: 1"); !strings.Contains(out, "  key /users/{id}\n") || !strings.Contains(out, "  key shop.test\n") {
		t.Errorf("explain says %q", out)
	}
}

// The commands say that requests wait, and that nobody waits in a replay.
func TestTheCommandsKnowWaits(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 1/m, wait: 90s}, {name: tried, key: ip, limits: 9/m, wait: 3s, dry-run: true}]")
	const counted = ": applies: the policy has no match conditions\n  cost 1, counted in each process by itself\n"
	out, _ := expect(t, 0, "", "explain", path)
	if out != "api"+counted+"  if a limit denies it, it waits for its turn, at most 1m30s\n  key 192.0.2.1\n    1 per 1m\ntried (dry run: denies nothing)"+counted+"  key 192.0.2.1\n    9 per 1m\n" {
		t.Errorf("explain says %q", out)
	}
	log := file(t, "access.log", strings.Repeat(`192.0.2.1 - - [21/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1`+"\n", 3))
	out, _ = expect(t, 0, "", "replay", path, log, "--sweep")
	if strings.Count(out, "nobody waits: requests that would have waited for their turn count as denied (policies with wait: api)") != 1 {
		t.Errorf("replay says %q", out)
	}
}

const ofMuleSoft = `
- policyRef: {name: rate-limiting-flex}
  config:
    rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 10000}]
    keySelector: "#[attributes.queryParams['identifier']]"
    clusterizable: false
`

// What import writes passes check, and a part that it cannot translate is an error.
func TestImport(t *testing.T) {
	out, errs := expect(t, exitFine, "", "import", file(t, "mulesoft.yaml", ofMuleSoft))
	if errs != "" {
		t.Errorf("prints %q", errs)
	}
	path := file(t, "limits.yaml", out)
	if out, _ := expect(t, exitFine, "", "check", path); !strings.Contains(out, ": 1 policy, no errors") {
		t.Errorf("check says %s", out)
	}
	if out, _ := expect(t, exitFine, "", "explain", path, "--path", "/?identifier=a"); !strings.Contains(out, "key a\n    3 per 10s (fixed_window)\n") {
		t.Errorf("explain says %s", out)
	}

	path = file(t, "wrong.yaml", ofMuleSoft+"- {policyRef: {name: cors-flex}, config: {}}\n")
	if out, errs = expect(t, exitFailed, "", "import", path); out != "" || !strings.HasPrefix(errs, path+`:7:15: [1].policyRef.name: "cors-flex" is not translated (`) {
		t.Errorf("prints %q, and the error %q", out, errs)
	}
}

const withCustomers = "policies: [{name: api, key: user, fallback: ip, limits: [3/m fixed_window, 9/h], in-flight: 7, cost: 5, quotas: {ann: 4/m, '?:10.0.0.1': unlimited, '?:203.0.113.1': 1/m}}]"

func TestExplainKnowsTheQuotasOfKeys(t *testing.T) {
	path := file(t, "p.yaml", withCustomers)
	for args, want := range map[string]string{
		"--user ann":      "  cost 5, counted in each process by itself\n  key ann\n    4 per 1m (fixed_window)\n    9 per 1h\n    7 at a time\n",
		"--user eve":      "  key eve\n    3 per 1m (fixed_window)\n",
		"--from 10.0.0.1": "  key ?:10.0.0.1\n    unlimited per 1m (fixed_window)\n",
	} {
		if out, _ := expect(t, 0, "", append([]string{"explain", path}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s says:\n%s\nwant:\n%s", args, out, want)
		}
	}
}

// full is an output on a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAnOutputThatCannotBeWrittenFailsTheCommand(t *testing.T) {
	good, log := file(t, "good.yaml", "policies: [{name: a, key: ip, limits: 1/h}]"), file(t, "access.log", accessLog(10))
	for name, args := range map[string][]string{
		"check": {"check", good}, "a warning": {"check", file(t, "limits.yaml", limits)}, "schema": {"schema"}, "explain": {"explain", good},
		"a report": {"replay", good, log}, "a page": {"replay", good, log, "--format", "html"}, "JSON": {"replay", good, log, "--format", "json"},
		"import": {"import", file(t, "mulesoft.yaml", ofMuleSoft)},
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), full{}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%s: exit status %d, prints %q", name, code, &errs)
		}
	}
}

// go-redis and key functions log to the standard error. The command prints one line, or none.
func TestAStoreThatIsGoneIsOneLineOfErrors(t *testing.T) {
	path := file(t, "limits.yaml", "policies: [{name: a, key: ip, limits: 1/h}]")
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), os.Args[0], "top", path, "--store", "redis://127.0.0.1:1")
	c.Env, c.Stderr = append(os.Environ(), asProgram+"=1"), &errs
	if err := c.Run(); err == nil {
		t.Error("there is no error")
	}
	if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "floodgate: redis://127.0.0.1:1: ") {
		t.Errorf("prints %q, want one line", got)
	}
	errs.Reset()
	c = exec.CommandContext(t.Context(), os.Args[0], "explain", file(t, "route.yaml", "policies: [{name: a, key: route, limits: 1/h}]"))
	c.Env, c.Stderr = append(os.Environ(), asProgram+"=1"), &errs
	if err := c.Run(); err != nil || errs.Len() > 0 {
		t.Errorf("explain: %v, prints %q, want nothing", err, &errs)
	}
}
