package main

import (
	"strings"
	"testing"
)

const ofMuleSoft = `
- policyRef: {name: rate-limiting-flex}
  config:
    rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 10000}]
    keySelector: "#[attributes.queryParams['identifier']]"
    clusterizable: false
`

// What import writes passes check, and what it cannot translate is an error.
func TestImport(t *testing.T) {
	out, errs := expect(t, exitFine, "", "import", file(t, "mulesoft.yaml", ofMuleSoft))
	if errs != "" {
		t.Errorf("prints %q", errs)
	}
	path := file(t, "limits.yaml", out)
	if out, _ := expect(t, exitFine, "", "check", path); !strings.Contains(out, ": 1 policy, no errors") {
		t.Errorf("check says %s", out)
	}
	if out, _ := expect(t, exitFine, "", "explain", path, "--path", "/?identifier=a"); !strings.Contains(out, "key a\n    at most 3 in 10s; a window begins with the first request of a key\n") {
		t.Errorf("explain says %s", out)
	}

	out, errs = expect(t, exitFailed, ofMuleSoft+"- [", "import", "-")
	if out != "" || !strings.HasPrefix(errs, "floodgate: standard input: ") {
		t.Errorf("of a file that is no YAML: %q, %q", out, errs)
	}
	out, errs = expect(t, exitFailed, ofMuleSoft+"- policyRef: {name: cors-flex}\n- policyRef: {name: cors-flex}\n", "import", "-")
	if !strings.Contains(out, "  - name: rate-limit\n") || strings.Count(errs, "standard input: not translated: ") != 2 || strings.Count(errs, "\n") != 2 {
		t.Errorf("of two policies of another kind: %q, %q", out, errs)
	}
	expect(t, exitUsage, "", "import")
	expect(t, exitFailed, "", "import", path+".none")
}
