package main

import (
	"bytes"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
)

func TestTheCountersOfAService(t *testing.T) {
	server := redistest.Start(t)
	url := "redis://" + server.Addr + "/2"
	path := file(t, "limits.yaml", `
policies:
  - {name: api, key: 'query["k"]', limits: [10/h fixed_window, 4/m fixed_window]}
  - {name: burst, limits: 10/h token_bucket burst=40, match: {methods: [PUT]}}
  - {name: tiered, tier: 'query["t"]', tiers: {default: 100/h, paid: 1000/h fixed_window}, key: 'query["k"]', match: {methods: [PUT]}}
  - {name: trial, limits: 20/h, key: 'query["k"]', match: {methods: [PUT]}, dry-run: true}
`)
	service := serviceOf(t, url, path)
	api := service.Limiter()
	for key, n := range map[string]int64{"ann": 3, "bob": 1, "": 2} {
		take(t, api, n, "api", key)
	}
	take(t, api, 990, "tiered-paid", "x\x1b")

	column := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	inspect := func(args ...string) []string {
		t.Helper()
		out, _ := expect(t, 0, "", append([]string{"inspect", path, "--store", url}, args...)...)
		return strings.Split(strings.TrimSpace(out), "\n")[1:]
	}
	lines := inspect("--policy", "api", "--key", "ann")
	if len(lines) != 2 || !strings.HasPrefix(column(lines[0]), "api 10 per 1h (fixed_window) 3 7 59m") || !regexp.MustCompile(` 59m\d+(\.\d{1,3})?s$`).MatchString(lines[0]) || !strings.HasPrefix(column(lines[1]), "api 4 per 1m (fixed_window) 3 1 ") {
		t.Errorf("of ann: %q", lines)
	}
	if lines := inspect("--policy", "api"); !strings.Contains(column(lines[0]), " 2 8 ") {
		t.Errorf("of no key: %q", lines)
	}
	if lines := inspect("--policy", "burst"); !strings.Contains(column(lines[0]), " 0 40 0s") {
		t.Errorf("of a burst: %q", lines)
	}
	if lines := inspect("--policy", "tiered", "--key", "x\x1b"); len(lines) != 2 || !strings.Contains(column(lines[1]), "tiered-paid 1000 per 1h (fixed_window) 990 10 ") {
		t.Errorf("of tiers: %q", lines)
	}

	out, _ := expect(t, 0, "", "top", path, "--store", url, "--top", "3", "--key", "ann", "--key", "x\x1b")
	lines = strings.Split(strings.TrimSpace(out), "\n")
	if !regexp.MustCompile(` \d+(\.\d{1,3})?s +ann$`).MatchString(lines[3]) || lines[0] != "4 counters" || len(lines) != 5 || !strings.HasPrefix(column(lines[2]), "tiered tiered-paid ") ||
		!strings.HasSuffix(lines[2], `"x\x1b"`) || !strings.HasPrefix(column(lines[3]), "api api 4 per 1m (fixed_window) 3 1 ") || !strings.HasSuffix(lines[3], " ann") || !strings.Contains(lines[4], "fg1:policies:api:") {
		t.Errorf("the nearest:\n%s", out)
	}

	out, _ = expect(t, 0, "", "reset", path, "--store", url, "--policy", "api", "--key", "ann")
	if out != "reset: key ann of policy api, rule api\n" {
		t.Errorf("reset says %q", out)
	}
	out, _ = expect(t, 0, "", "reset", path, "--store", url, "--policy", "api", "--key", "ann")
	if out != "nothing to reset: key ann of policy api has used nothing\n" {
		t.Errorf("another reset says %q", out)
	}
	// What explain prints of a key is what inspect, reset and top take.
	for _, key := range []string{`a\b`, `"quoted" ü`, "\xff\n"} {
		take(t, api, 1, "api", key)
		out, _ := expect(t, 0, "", "explain", path, "--path", "/?"+neturl.Values{"k": {key}}.Encode())
		_, printed, _ := strings.Cut(out, "\n  key ")
		printed, _, _ = strings.Cut(printed, "\n")
		if lines := inspect("--policy", "api", "--key", printed); !strings.Contains(column(lines[0]), " 1 9 ") {
			t.Errorf("inspect of %s: %q", printed, lines)
		}
		if out, _ := expect(t, 0, "", "top", path, "--store", url, "--key", printed); !strings.Contains(out, " "+printed+"\n") {
			t.Errorf("top of %s:\n%s", printed, out)
		}
		if out, _ := expect(t, 0, "", "reset", path, "--store", url, "--policy", "api", "--key", printed); out != "reset: key "+printed+" of policy api, rule api\n" {
			t.Errorf("reset of %s says %q", printed, out)
		}
		if lines := inspect("--policy", "api", "--key", printed); !strings.Contains(column(lines[0]), " 0 10 ") {
			t.Errorf("inspect of %s after the reset: %q", printed, lines)
		}
	}
	if lines := inspect("--policy", "api", "--key", "ann"); !strings.Contains(column(lines[0]), " 0 10 ") {
		t.Errorf("of ann after the reset: %q", lines)
	}
	if lines := inspect("--policy", "api", "--key", "bob", "--rule", "api"); !strings.Contains(column(lines[0]), " 1 9 ") {
		t.Errorf("of bob after ann's reset: %q", lines)
	}

	for want, args := range map[string][]string{
		`--policy: "no": want a policy that counts in Redis: api, burst, tiered, trial`: {"--policy", "no"},
		`--rule: "no": want one of api`:                             {"--policy", "api", "--rule", "no"},
		`--rule: "tiered": want one of tiered-default, tiered-paid`: {"--policy", "tiered", "--rule", "tiered"},
		`--policy: "": want a policy that counts in Redis: `:        {},
	} {
		for _, verb := range []string{"inspect", "reset"} {
			if _, errs := expect(t, exitUsage, "", append([]string{verb, path, "--store", url}, args...)...); !strings.Contains(errs, want) {
				t.Errorf("%s %q says %s, want %s", verb, args, errs, want)
			}
		}
	}
	// Without --rule, a reset is for all tiers. A dry run has its own counters.
	take(t, api, 7, "tiered-default", "y")
	take(t, api, 7, "tiered-paid", "y")
	take(t, service.DryRun(), 6, "trial", "y")
	if out, _ := expect(t, 0, "", "grant", path, "--store", url, "--policy", "tiered", "--key", "y", "--hits", "3"); !strings.Contains(column(out), " 4 96 ") || !strings.Contains(column(out), " 4 996 ") {
		t.Errorf("grant says %q", out)
	}
	expect(t, 0, "", "block", path, "--store", url, "--policy", "tiered", "--key", "y", "--for", "1h")
	if lines := inspect("--policy", "tiered", "--key", "y"); !strings.Contains(column(lines[0]), " 100 0 ") || !strings.Contains(column(lines[1]), " 1000 0 ") {
		t.Errorf("of y while it is blocked: %q", lines)
	}
	if out, _ := expect(t, 0, "", "reset", path, "--store", url, "--policy", "tiered", "--key", "y"); out != "reset: key y of policy tiered, rule tiered-default, rule tiered-paid\n" {
		t.Errorf("reset says %q", out)
	}
	if lines := inspect("--policy", "tiered", "--key", "y"); !strings.Contains(column(lines[0]), " 0 100 ") || !strings.Contains(column(lines[1]), " 0 1000 ") {
		t.Errorf("of y after the reset: %q", lines)
	}
	if lines := inspect("--policy", "trial", "--key", "y"); !strings.Contains(column(lines[0]), " 6 14 ") {
		t.Errorf("of the dry run: %q", lines)
	}
	if lines := inspect("--policy", "tiered", "--key", "x\x1b", "--rule", "paid"); len(lines) != 1 || !strings.HasPrefix(lines[0], "tiered-paid ") {
		t.Errorf("of one tier: %q", lines)
	}
}

// The store is that of the flag, or that of the environment. No password is printed.
func TestTheStoreOfTheService(t *testing.T) {
	server := redistest.Start(t)
	server.MustDo("CONFIG", "SET", "requirepass", "hush-hush")
	path := file(t, "limits.yaml", "store: {redis: {address: '127.0.0.1:1'}}\npolicies: [{name: api, key: ip, limits: 10/h aligned}, {name: own, counting: local, key: ip, limits: 1/h}]\n")
	commands := [][]string{{"top"}, {"inspect", "--policy", "api"}, {"reset", "--policy", "api"}, {"grant", "--policy", "api", "--hits", "1"}, {"block", "--policy", "api", "--for", "8784h"}}
	t.Setenv(storeVariable, "redis://:hush-hush@"+server.Addr+"/3")
	for want, args := range map[string][]string{
		"0 counters\n": {"top", path},
		"api   10 per 1h (aligned)  0     10         0s\n":         {"inspect", path, "--policy", "api", "--key", "k"},
		"nothing to reset: key k of policy api has used nothing\n": {"reset", path, "--policy", "api", "--key", "k"},
	} {
		if out, errs := expect(t, exitFine, "", args...); !strings.Contains(out, want) || errs != "" {
			t.Errorf("%q: prints %q and %q", args, out, errs)
		}
	}
	for _, args := range commands {
		var errs bytes.Buffer
		if code := run(t.Context(), append(args, path), strings.NewReader(""), full{}, &errs); code != exitFailed || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%q to a full disk: %d, %q", args, code, &errs)
		}
	}
	if out, _ := expect(t, exitFine, "", "top", "--help"); strings.Contains(out, "hush") {
		t.Errorf("the help text: %s", out)
	}
	t.Setenv(storeVariable, "")
	for url, want := range map[string]string{
		"":                           "--store is missing: want the Redis of the service, such as redis://",
		"user:hush@hush@localhost":   `--store: "localhost" has no scheme: want a URL such as redis://127.0.0.1:6379/0` + "\n",
		"http://u:hush-hush@a.test":  `want redis, rediss, unix`,
		"redis://:hush@127.0.0.1:1/": "floodgate: redis://127.0.0.1:1/: ",
	} {
		for _, args := range commands {
			code, _, errs := command(t, "", append(args, path, "--store", url)...)
			if code == exitFine || !strings.Contains(errs, want) || strings.Contains(errs, "hush") {
				t.Errorf("%s: %d, %q, want %s", url, code, errs, want)
			}
		}
	}
}

// The hits that the command grants are there for the service.
func TestAGrantIsThereForTheService(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies:\n  - {name: api, key: 'query[\"k\"]', limits: '10/h fixed_window, 30/d fixed_window'}\n")
	api, ann := serviceOf(t, "redis://"+server.Addr, path).Limiter(), core.Hit{Rule: "api", Key: "ann"}
	if d, err := api.Take(t.Context(), 10, ann); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	flags := []string{"grant", path, "--store", "redis://" + server.Addr + "/0", "--policy", "api", "--key", "ann", "--hits"}
	if out, _ := expect(t, 0, "", append(flags, "4")...); !regexp.MustCompile(`10 per 1h .* 6 +4 .*\n.*30 per .* 6 +24 `).MatchString(out) {
		t.Error(out)
	}
	if d, err := api.Take(t.Context(), 4, ann); err != nil || !d.Allowed {
		t.Errorf("%v, %v", d, err)
	}
	expect(t, 0, "", append(flags, "1")...)
	if out, _ := expect(t, 0, "", append(flags, "2147483647")...); !regexp.MustCompile(`10 per 1h .* 0 +10 `).MatchString(out) {
		t.Error(out)
	}
	for _, n := range []string{"0", "-1", "2147483648"} {
		if _, errs := expect(t, 2, "", append(flags, n)...); !strings.Contains(errs, "--hits: "+n+": must be from 1 to 2147483647") {
			t.Errorf("%s: %s", n, errs)
		}
	}
}

// A block denies a key in a running service, and a reset ends it.
func TestABlockIsThereForTheService(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "limits.yaml", "policies: [{name: api, key: ip, limits: 10/h}]")
	api := serviceOf(t, "redis://"+server.Addr, path).Limiter()
	flags := []string{path, "--store", "redis://" + server.Addr, "--policy", "api", "--key", "ann"}
	allowed := func(want bool) {
		t.Helper()
		if d, err := api.Take(t.Context(), 1, core.Hit{Rule: "api", Key: "ann"}); err != nil || d.Allowed != want {
			t.Errorf("%v, %v, want allowed %t", d, err, want)
		}
	}
	allowed(true)
	if out, _ := expect(t, exitFine, "", append([]string{"block", "--for", "30m"}, flags...)...); out != "blocked: key ann of policy api, for 30m0s\n" {
		t.Errorf("block says %q", out)
	}
	allowed(false)
	if out, _ := expect(t, exitFine, "", append([]string{"inspect"}, flags...)...); !strings.Contains(out, " 0 ") {
		t.Errorf("inspect says %q", out)
	}
	expect(t, exitFine, "", append([]string{"reset"}, flags...)...)
	allowed(true)
	for _, wrong := range []string{"0s", "-1s", "8784h0m0.001s"} {
		if _, errs := expect(t, exitUsage, "", append([]string{"block", "--for", wrong}, flags...)...); !strings.HasPrefix(errs, "usage: --for: ") {
			t.Errorf("--for %s: %q", wrong, errs)
		}
	}
}

// inspect knows the quota that the file has for a key.
func TestInspectKnowsTheQuotasOfKeys(t *testing.T) {
	server := redistest.Start(t)
	path := file(t, "p.yaml", "policies: [{name: api, key: ip, limits: [10/h, 20/d], quotas: {ann: 5/h, bob: unlimited}}]")
	api := serviceOf(t, "redis://"+server.Addr, path).Limiter()
	for key, want := range map[string]string{
		"ann": "api 5 per 1h 3 2 ",
		"bob": "api unlimited per 1h - unlimited ",
		"eve": "api 10 per 1h 3 7 ",
	} {
		take(t, api, 3, "api", key)
		out, _ := expect(t, exitFine, "", "inspect", path, "--store", "redis://"+server.Addr, "--policy", "api", "--key", key)
		if got := strings.Join(strings.Fields(out), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
