package mulesoft_test

import (
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

// A sliding log remembers each hit, and so has a largest quota.
func TestASpikeControlOfALargeQuotaIsASlidingWindow(t *testing.T) {
	for quota, want := range map[string]string{"10000": "sliding_log", "10001": "sliding_window"} {
		result, err := mulesoft.Import([]byte("policyRef: {name: spike-control-flex}\nconfig: {maximumRequests: " + quota + ", timePeriodInMilliseconds: 1000}\n"))
		if err != nil || !strings.Contains(string(result.Text), "timePeriodInMilliseconds: 1000, algorithm: "+want+"}") {
			t.Errorf("%s: %v\n%s", quota, err, result.Text)
		}
	}
}

func TestAnAnchorWithoutAnAliasIsRefused(t *testing.T) {
	_, err := mulesoft.Import([]byte("policyRef: {name: spike-control-flex}\nconfig: &c {maximumRequests: 3, timePeriodInMilliseconds: 1000}\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2: aliases are not read") {
		t.Error(err)
	}
}

// The number of the database is written DB or db.
func TestTheNumberOfTheDatabase(t *testing.T) {
	for _, field := range []string{"DB", "db"} {
		result, err := mulesoft.Import([]byte("spec: {sharedStorage: {redis: {address: 'redis:6379', " + field + ": 2}}}\n---\npolicyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 1000}]}\n"))
		if err != nil || !strings.Contains(string(result.Text), "\n    db: 2\n") || len(result.Lost) != 0 {
			t.Errorf("%s: %v, %q\n%s", field, err, result.Lost, result.Text)
		}
	}
}

// Of a policy that names an API, the file says that it is lost which API it limits. A
// policy that names none limits all.
func TestAPolicyOfNoAPIBesideOneOfAnAPI(t *testing.T) {
	const policy = "policyRef: {name: spike-control-flex}, config: {maximumRequests: 3, timePeriodInMilliseconds: 1000}"
	result, err := mulesoft.Import([]byte("{" + policy + "}\n---\nspec: {targetRef: {name: orders}, " + policy + "}\n"))
	if err != nil || strings.Contains(string(result.Text), "the API :") || !strings.Contains(string(result.Text), "the API orders: ") || len(result.Lost) != 1 {
		t.Errorf("%v, %q\n%s", err, result.Lost, result.Text)
	}
}

func TestALongNameIsCutTo40Characters(t *testing.T) {
	long := strings.Repeat("n", 70)
	result, err := mulesoft.Import([]byte("metadata: {name: " + long + "}\nspec: {policyRef: {name: spike-control-flex}, config: {maximumRequests: 3, timePeriodInMilliseconds: 1000}}\n"))
	if err != nil || !strings.Contains(string(result.Text), "- name: "+long[:40]+"\n") {
		t.Errorf("%v\n%s", err, result.Text)
	}
}
