package mulesoft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/mulesoft"
)

// unloadable is a policy whose key no policy file can have: a header has no spaces.
const unloadable = "policyRef: {name: rate-limiting-flex}\nconfig:\n  keySelector: \"#[attributes.headers['a b']]\"\n  rateLimits: [{maximumRequests: 3, timePeriodInMilliseconds: 6000}]\n"

// A policy that does not load is left out, and so is what it says of the store. The other
// policies of the file are written. What was lost of it is told at the beginning.
func TestAPolicyThatDoesNotLoadBesideOneThatDoes(t *testing.T) {
	result, err := mulesoft.Import([]byte("spec: {sharedStorage: {redis: {address: 'h:1'}}}\n---\n" + unloadable + "  burst: 5\n  blockOnUnknownQuota: true\n---\n" + flex + "  blockOnUnknownQuota: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(result.Text)
	for _, want := range []string{"# NOT TRANSLATED: rate-limit: burst is not known\n", "# NOT TRANSLATED: rate-limit: policies[0].key: ", "  on-failure: fail-open # blockOnUnknownQuota: false\n", "policies:\n  - name: rate-limit-2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("writes\n%s\nwant %s", text, want)
		}
	}
	if strings.Contains(text, "differs") || len(result.Lost) != 2 || !slices.Contains(result.Lost, "rate-limit: burst is not known") {
		t.Errorf("lost %q, want burst and the key\n%s", result.Lost, text)
	}
}

// Of two limits in the same time the smaller one is written, whichever is first.
func TestTheSmallerOfTwoLimitsIsWritten(t *testing.T) {
	for _, quotas := range [][2]string{{"3", "5"}, {"5", "3"}} {
		result, err := mulesoft.Import([]byte("policyRef: {name: rate-limiting-flex}\nconfig: {rateLimits: [{maximumRequests: " + quotas[0] + ", timePeriodInMilliseconds: 6000}, {maximumRequests: " + quotas[1] + ", timePeriodInMilliseconds: 6000}]}\n"))
		if err != nil || !strings.Contains(string(result.Text), "    limits:\n      - {maximumRequests: 3, timePeriodInMilliseconds: 6000, algorithm: fixed_window}\n    counting") ||
			!strings.Contains(string(result.Text), "of the limits "+quotas[0]+" and "+quotas[1]+" in 6000 ms, only the smaller one matters") {
			t.Errorf("%v: %v\n%s", quotas, err, result.Text)
		}
	}
}
