package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// quotaFiles returns the path of a policy file with a table in its folder.
func quotaFiles(t *testing.T, policies, table string) string {
	t.Helper()
	path := file(t, "p.yaml", policies)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "customers"), []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const withCustomers = "policies: [{name: api, key: user, fallback: ip, limits: [3/m fixed_window, 9/h], quota: 'method == \"PUT\" ? \"1/m\" : \"\"', quotas: {file: customers}}]"

func TestExplainSaysWhereAQuotaComesFrom(t *testing.T) {
	path := quotaFiles(t, withCustomers, "# x\nann: 100/m\n\"?:10.0.0.1\": unlimited/m\n")
	customers := filepath.Join(filepath.Dir(path), "customers")
	for args, want := range map[string]string{
		"--user ann":              "  rule api: key ann\n    at most 100 in 1m; a window begins with the first request of a key (" + customers + ":2; the limit's own quota is 3)\n    at most 9 in 1h; the window before counts in part\n",
		"--user eve --method PUT": "  rule api: key eve\n    at most 1 in 1m; a window begins with the first request of a key (the field quota; the limit's own quota is 3)\n",
		"--user eve":              "  rule api: key eve\n    at most 3 in 1m; a window begins with the first request of a key\n",
		"--from 10.0.0.1":         "  rule api: key ?:10.0.0.1\n    without a limit, counted in 1m (" + customers + ":3; the limit's own quota is 3)\n",
	} {
		if out, _ := expect(t, 0, "", append([]string{"explain", path}, strings.Fields(args)...)...); !strings.Contains(out, want) {
			t.Errorf("%s says:\n%s\nwant:\n%s", args, out, want)
		}
	}
}

func TestCheckReadsTables(t *testing.T) {
	path := quotaFiles(t, withCustomers, "ann: 0/m\n")
	customers := filepath.Join(filepath.Dir(path), "customers")
	if out, _ := expect(t, 0, "", "check", path); !strings.Contains(out, customers+":1:6: policies[0].quotas: warning: \"0/m\": denies all requests of the key") {
		t.Errorf("says %q", out)
	}
	path = quotaFiles(t, withCustomers, "ann: 5\nbob: 1/m\nkim: many\n")
	customers = filepath.Join(filepath.Dir(path), "customers")
	if _, errs := expect(t, 1, "", "check", path); !strings.HasPrefix(errs, customers+`:3:6: policies[0].quotas: "many": is no quota`) {
		t.Errorf("says %q", errs)
	}
}

// Sources that only the program has are empty, or come from a file.
func TestSourcesOfQuotas(t *testing.T) {
	path := quotaFiles(t, strings.Replace(withCustomers, "file: customers", "source: plans", 1), "ann: 100/m\n")
	customers := filepath.Join(filepath.Dir(path), "customers")
	if out, _ := expect(t, 0, "", "check", "--strict", path); !strings.Contains(out, "no errors") {
		t.Errorf("check says %q", out)
	}
	if out, _ := expect(t, 0, "", "explain", path, "--user", "ann"); !strings.Contains(out, "at most 3 in 1m") {
		t.Errorf("without a file: %s", out)
	}
	if out, _ := expect(t, 0, "", "explain", path, "--user", "ann", "--quotas", "plans="+customers); !strings.Contains(out, "at most 100 in 1m") {
		t.Errorf("with a file: %s", out)
	}
	for _, bad := range []string{"plans", "=x", "plans="} {
		for _, verb := range [][]string{{"explain", path}, {"replay", path, "-"}} {
			if _, errs := expect(t, exitUsage, "", append(verb, "--quotas", bad)...); !strings.Contains(errs, "want NAME=FILE") {
				t.Errorf("%q says %q", bad, errs)
			}
		}
	}
	expect(t, 1, "", "explain", path, "--quotas", "plans="+customers+".none")
}

func TestReplayUsesTables(t *testing.T) {
	var log strings.Builder
	for range 5 {
		for _, user := range []string{"ann", "eve", "-"} {
			log.WriteString("203.0.113.1 - " + user + " [21/Nov/2026:10:00:01 +0000] \"GET /api HTTP/1.1\" 200 12 \"-\" \"curl\"\n")
		}
	}
	path := quotaFiles(t, withCustomers, "ann: 4/m\n\"?:203.0.113.1\": 1/m\n")
	if out, _ := expect(t, 0, log.String(), "replay", "--quiet", path, "-"); !strings.Contains(out, "8 allowed, 7 denied") {
		t.Errorf("says %s", out)
	}
	path = quotaFiles(t, strings.Replace(withCustomers, "file: customers", "source: plans", 1), "ann: 4/m\n\"?:203.0.113.1\": 1/m\n")
	if out, _ := expect(t, 0, log.String(), "replay", "--quiet", path, "-"); !strings.Contains(out, "9 allowed, 6 denied") {
		t.Errorf("without the source it says %s", out)
	}
	if out, _ := expect(t, 0, log.String(), "replay", "--quiet", "--quotas", "plans="+filepath.Join(filepath.Dir(path), "customers"), path, "-"); !strings.Contains(out, "8 allowed, 7 denied") {
		t.Errorf("with the source it says %s", out)
	}
}
