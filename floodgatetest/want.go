package floodgatetest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// WantAllowed reports an error with the decision if d is not Allowed, or only
// because the limiter or a rule rehearses.
func WantAllowed(t testing.TB, d core.Decision) {
	t.Helper()
	switch {
	case !d.Allowed:
		t.Errorf("denied, want it allowed: %s", describe(d))
	case d.Rehearsal:
		t.Errorf("allowed only in a rehearsal, want it allowed: %s", describe(d))
	}
}

// WantDenied reports an error with the decision if d is Allowed, or if it is
// denied for another reason than a limit, or if its RetryAfter is another than
// retryAfter: core.Never if no waiting helps.
func WantDenied(t testing.TB, d core.Decision, retryAfter time.Duration) {
	t.Helper()
	switch {
	case d.Allowed && !d.Rehearsal:
		t.Errorf("allowed, want it denied: %s", describe(d))
	case d.Reason != core.ReasonOverLimit:
		t.Errorf("denied for another reason than a limit: %s", describe(d))
	case d.RetryAfter != retryAfter:
		t.Errorf("RetryAfter is %v, want %v: %s", d.RetryAfter, retryAfter, describe(d))
	}
}

// WantRemaining reports an error with the decision if the first limit of a rule
// has not n hits left, or if the rule did not apply.
func WantRemaining(t testing.TB, d core.Decision, rule string, n int64) {
	t.Helper()
	all := slices.Collect(d.Limits())
	i := slices.IndexFunc(all, func(s core.LimitStatus) bool { return s.Rule == rule })
	switch {
	case i < 0:
		t.Errorf("rule %q did not apply: %s", rule, describe(d))
	case all[i].Remaining != n:
		t.Errorf("rule %q has %d hits left, want %d: %s", rule, all[i].Remaining, n, describe(d))
	}
}

// describe is the decision's text with what only a test may see.
func describe(d core.Decision) string {
	text := d.String()
	if key := d.Key(); key != "" {
		text += "; the key is " + strconv.Quote(key)
	}
	if d.Err != nil {
		text += "; the error is: " + d.Err.Error()
	}
	return text
}
