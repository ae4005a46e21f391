package policy_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/policy"
)

// Of several policies that deny a request, the one with the longest wait decides,
// wherever it is in the file: the status, the body and Retry-After are its own. The
// RateLimit fields are those of all.
func TestOfSeveralDenialsTheLongestWaitDecides(t *testing.T) {
	policies := map[string]string{
		"minute": "{name: minute, limits: 1/m fixed_window, headers: draft-10, on-denied: {status: 503, body: minute, headers: {X-Why: minute}}}",
		"hour":   "{name: hour, limits: 1/h fixed_window, headers: draft-10, on-denied: {status: 500, body: hour, headers: {X-Which: hour}}}",
		"second": "{name: second, limits: 1/s fixed_window, headers: [draft-10, x-seconds], on-denied: {status: 418, body: second}}",
		"open":   "{name: open, limits: 9/m fixed_window, headers: draft-10}",
	}
	names := []string{"minute", "hour", "second", "open"}
	for _, order := range permutations(names) {
		text := "policies:\n"
		for _, name := range order {
			text += "  - " + policies[name] + "\n"
		}
		s := newSite(t, text)
		if got := fields(s.expect(200, "GET", "/").Header()); got != "hour:0 minute:0 open:8 second:0" {
			t.Errorf("%v: an allowed request has the fields %s", order, got)
		}
		w := s.expect(500, "GET", "/")
		h := w.Header()
		if w.Body.String() != "hour" || h.Get("Retry-After") != "3600" || h.Get("X-Which") != "hour" || h.Get("X-Why") != "" || len(h.Values("Retry-After")) != 1 {
			t.Errorf("%v: %q %v", order, w.Body, h)
		}
		if got := fields(h); got != "hour:0 minute:0 open:8 second:0" {
			t.Errorf("%v: a denied request has the fields %s", order, got)
		}
		s.pass(1e9) // second allows again
		if got := fields(s.expect(500, "GET", "/").Header()); got != "hour:0 minute:0 open:8 second:1" {
			t.Errorf("%v: a second later it has the fields %s", order, got)
		}
		if got := s.used("open", 9); got != 1 {
			t.Errorf("%v: the policy that allows was charged %d times, want once", order, got)
		}
	}
}

// fields are the policies that a response names in RateLimit, and what is left.
func fields(h http.Header) string {
	var all []string
	for _, line := range h.Values("Ratelimit") {
		for item := range strings.SplitSeq(line, ",") {
			var left int
			name, rest, _ := strings.Cut(strings.TrimSpace(item), ";")
			_, _ = fmt.Sscanf(rest, "r=%d", &left)
			all = append(all, fmt.Sprintf("%s:%d", strings.Trim(name, `"`), left))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func permutations(names []string) (all [][]string) {
	if len(names) == 0 {
		return [][]string{nil}
	}
	for i, name := range names {
		for _, rest := range permutations(slices.Delete(slices.Clone(names), i, i+1)) {
			all = append(all, append([]string{name}, rest...))
		}
	}
	return all
}

// Of equal waits the first in the file decides. A wait without end is longer than
// any other: a denied address is told so, whatever else denies it. What is at fault
// with a request is said if no limit denies it and nothing else fails.
func TestWhichOfDifferentDenialsDecides(t *testing.T) {
	const (
		first  = "{name: first, limits: 0/m aligned, on-denied: {status: 501}}"
		second = "{name: second, limits: 0/m aligned, on-denied: {status: 502}}"
		over   = "{name: over, limits: 1/m fixed_window, cost: '2', on-denied: {status: 503}}"
		listed = "{name: listed, limits: 5/m, deny: [192.0.2.0/24]}"
		used   = "{name: used, limits: 1/h, on-denied: {status: 504}}"
		fault  = "{name: fault, key: 'query[\"k\"]', missing: reject, limits: 9/m}"
		fails  = "{name: fails, tiers: {default: 9/m}}"
	)
	for _, c := range []struct {
		policies []string
		want     int
	}{
		{[]string{first, second}, 501},
		{[]string{second, first}, 502},
		{[]string{used, first}, 501},
		{[]string{first, used}, 501},
		{[]string{used, listed}, 403},
		{[]string{listed, used}, 403},
		{[]string{used, over}, 503},
		{[]string{over, used}, 503},
		{[]string{used, fault}, 504},
		{[]string{fault, used}, 504},
		{[]string{fault, fails}, 503},
		{[]string{fails, fault}, 503},
	} {
		s := newSite(t, "policies: ["+strings.Join(c.policies, ", ")+"]", policy.WithTier(func(core.Request) (string, error) { return "", context.DeadlineExceeded }))
		if s.set.PolicyOf("used") != "" {
			if _, err := s.set.Limiter().Take(t.Context(), 1, core.Hit{Rule: "used"}); err != nil {
				t.Fatal(err)
			}
		}
		if w := s.send("GET", "/"); w.Code != c.want {
			t.Errorf("%v: %d, want %d", c.policies, w.Code, c.want)
		}
	}
}
