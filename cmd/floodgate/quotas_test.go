package main

import (
	"strings"
	"testing"
)

const withCustomers = "policies: [{name: api, key: user, fallback: ip, limits: [3/m fixed_window, 9/h], quotas: {ann: 4/m, '?:10.0.0.1': unlimited, '?:203.0.113.1': 1/m}}]"

func TestExplainSaysWhereAQuotaComesFrom(t *testing.T) {
	path := file(t, "p.yaml", withCustomers)
	for args, want := range map[string]string{
		"--user ann":      "  rule api: key ann\n    quotas of this key, from the field quotas:\n    at most 4 in 1m; a window begins with the first request of a key\n    at most 9 in 1h; the window before counts in part\n",
		"--user eve":      "  rule api: key eve\n    at most 3 in 1m; a window begins with the first request of a key\n",
		"--from 10.0.0.1": "  rule api: key ?:10.0.0.1\n    quotas of this key, from the field quotas:\n    without a limit, counted in 1m\n",
	} {
		if out, _ := expect(t, 0, "", append([]string{"explain", path}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s says:\n%s\nwant:\n%s", args, out, want)
		}
	}
}

func TestReplayUsesTheQuotasOfKeys(t *testing.T) {
	var log strings.Builder
	for range 5 {
		for _, user := range []string{"ann", "eve", "-"} {
			log.WriteString("203.0.113.1 - " + user + " [21/Nov/2026:10:00:01 +0000] \"GET /api HTTP/1.1\" 200 12 \"-\" \"curl\"\n")
		}
	}
	if out, _ := expect(t, 0, log.String(), "replay", "--quiet", file(t, "p.yaml", withCustomers), "-"); !strings.Contains(out, "8 allowed, 7 denied") {
		t.Errorf("says %s", out)
	}
}
