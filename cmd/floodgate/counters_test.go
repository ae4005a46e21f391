package main

import (
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/redistest"
	"github.com/floodgate-go/floodgate/policy"
	redisstore "github.com/floodgate-go/floodgate/stores/redis"
)

func TestTheCountersOfAService(t *testing.T) {
	server := redistest.Start(t)
	url := "redis://" + server.Addr + "/2"
	path := file(t, "limits.yaml", `
policies:
  - {name: api, key: 'query["k"]', limits: [10/h fixed_window, 4/m fixed_window]}
  - {name: burst, limits: 10/h token_bucket burst=40, match: {methods: [PUT]}}
  - {name: tiered, tier: 'query["t"]', tiers: {default: 100/h, paid: 1000/h fixed_window}, key: 'query["k"]', match: {methods: [PUT]}}
`)
	// The service.
	client := redis.NewClient(&redis.Options{Addr: server.Addr, DB: 2})
	defer client.Close() //nolint:errcheck // the test is over
	set, err := policy.Load(path, policy.WithStore(redisstore.New(client, redisstore.Timeout(5*time.Second))))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close() //nolint:errcheck // the test is over
	api := set.Limiter()
	for key, n := range map[string]int64{"ann": 3, "bob": 1, "": 2} {
		if _, err := api.Take(t.Context(), n, core.Hit{Rule: "api", Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := api.Take(t.Context(), 990, core.Hit{Rule: "tiered-paid", Key: "x\x1b"}); err != nil {
		t.Fatal(err)
	}

	column := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	inspect := func(args ...string) []string {
		t.Helper()
		out, _ := expect(t, 0, "", append([]string{"inspect", path, "--store", url}, args...)...)
		return strings.Split(strings.TrimSpace(out), "\n")[1:]
	}
	lines := inspect("--policy", "api", "--key", "ann")
	if len(lines) != 2 || !strings.HasPrefix(column(lines[0]), "api 10 per 1h (fixed_window) 3 7 59m") || !strings.HasPrefix(column(lines[1]), "api 4 per 1m (fixed_window) 3 1 ") {
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
	if lines[0] != "4 counters" || len(lines) != 5 || !strings.HasPrefix(column(lines[2]), "tiered tiered-paid ") || !strings.HasSuffix(lines[2], `"x\x1b"`) || !strings.HasPrefix(column(lines[3]), "api api 4 per 1m (fixed_window) 3 1 ") || !strings.HasSuffix(lines[3], " ann") || !strings.Contains(lines[4], "fg1:policies:api:") {
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
	for _, key := range []string{"a\nb", `a\b`, `"quoted"`, " ", "\xff", "ü", strings.Repeat("long", 200)} {
		if _, err := api.Take(t.Context(), 1, core.Hit{Rule: "api", Key: key}); err != nil {
			t.Fatal(err)
		}
		out, _ := expect(t, 0, "", "explain", path, "--path", "/?"+neturl.Values{"k": {key}}.Encode())
		_, printed, _ := strings.Cut(out, ": key ")
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
		`--policy: "no": the file has api, burst, tiered`:                       {"--policy", "no"},
		`--policy: "ap": the file has api, burst, tiered`:                       {"--policy", "ap"},
		`--rule: "no": the policy has api`:                                      {"--policy", "api", "--rule", "no"},
		`--rule: "a": the policy has api`:                                       {"--policy", "api", "--rule", "a"},
		`--rule: "tiered": the policy has tiered-default, tiered-paid`:          {"--policy", "tiered", "--rule", "tiered"},
		`--rule: "tiered-paid-too": the policy has tiered-default, tiered-paid`: {"--policy", "tiered", "--rule", "tiered-paid-too"},
	} {
		for _, verb := range []string{"inspect", "reset"} {
			if _, errs := expect(t, exitUsage, "", append([]string{verb, path, "--store", url}, args...)...); !strings.Contains(errs, want) {
				t.Errorf("%s %q says %s, want %s", verb, args, errs, want)
			}
		}
	}
	if lines := inspect("--policy", "tiered", "--key", "x\x1b", "--rule", "tiered-paid"); len(lines) != 1 || !strings.HasPrefix(lines[0], "tiered-paid ") {
		t.Errorf("of one tier: %q", lines)
	}
	for _, verb := range []string{"inspect", "reset"} {
		_, errs := expect(t, 1, "", verb, path, "--store", "redis://:secret@127.0.0.1:1", "--policy", "api")
		if errs == "" || strings.Contains(errs, "secret") {
			t.Errorf("%s of a server that is not there: %q", verb, errs)
		}
	}
	expect(t, 1, "", "top", path, "--store", "redis://127.0.0.1:1")
}
