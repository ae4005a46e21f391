package floodgatetest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// WantAllowed calls t.Error with the text of d if d is not Allowed. It does so too if d is Allowed
// only because of core.Config.DryRun. It may be called concurrently.
func WantAllowed(t testing.TB, d core.Decision) {
	t.Helper()
	switch {
	case !d.Allowed:
		t.Errorf("denied, want it allowed: %s", describe(d))
	case d.DryRun:
		t.Errorf("allowed only in a dry run, want it allowed: %s", describe(d))
	}
}

// WantDenied calls t.Error with the text of d if d is Allowed, if d is denied for another reason
// than a limit, or if its RetryAfter is not retryAfter. A difference below a millisecond does not
// count: a SlidingWindow of a minute ends a microsecond later. Write core.Never for a request that
// is denied however long it waits. A decision that core.Config.DryRun has changed to Allowed counts
// as denied. WantDenied may be called concurrently.
func WantDenied(t testing.TB, d core.Decision, retryAfter time.Duration) {
	t.Helper()
	switch {
	case d.Allowed && !d.DryRun:
		t.Errorf("allowed, want it denied: %s", describe(d))
	case d.Reason != core.ReasonOverLimit:
		t.Errorf("denied for another reason than a limit: %s", describe(d))
	case (d.RetryAfter - retryAfter).Abs() >= time.Millisecond:
		t.Errorf("RetryAfter is %v, want %v: %s", d.RetryAfter, retryAfter, describe(d))
	}
}

// WantRemaining calls t.Error with the text of d if the first limit of the rule does not have n
// hits left, or if the rule did not apply. It may be called concurrently.
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

// describe returns the decision's text with the key and the error, which Decision.String leaves out
// because a client may have written them.
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
