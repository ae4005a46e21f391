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
	if out, _ := expect(t, exitFine, "", "explain", path, "--path", "/?identifier=a"); !strings.Contains(out, "key a\n    at most 3 in 10s; a window begins with the first request of a key\n") {
		t.Errorf("explain says %s", out)
	}

	for wrong, want := range map[string]string{
		"- [": "standard input:7:3: is no YAML: ",
		"- {policyRef: {name: cors-flex}, config: {}}\n": `standard input:7:15: [1].policyRef.name: "cors-flex" is not translated (`,
	} {
		if out, errs = expect(t, exitFailed, ofMuleSoft+wrong, "import", "-"); out != "" || !strings.HasPrefix(errs, want) {
			t.Errorf("%q: prints %q, and the error %q, want %s", wrong, out, errs, want)
		}
	}
	expect(t, exitUsage, "", "import")
	expect(t, exitFailed, "", "import", path+".none")
}
