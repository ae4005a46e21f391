package policy_test

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A request that comes back with another path is counted by the policies for that
// path, and by no policy twice.
func TestARequestThatComesBackIsCountedByTheOtherPolicies(t *testing.T) {
	s := newSite(t, `
policies:
  - {name: a, match: {paths: [/a]}, limits: 9/h, headers: draft-10}
  - {name: b, match: {paths: [/b, /c]}, limits: 9/h, headers: draft-10}
  - {name: c, match: {paths: [/c]}, limits: 9/h, headers: draft-10}
  - {name: free, tiers: {default: unlimited, paid: 9/h}, tier: path}
  - {name: all, limits: 9/h, headers: draft-10}
  - {name: closed, match: {paths: [/closed]}, limits: 0/h}
`)
	counts := func() (n [4]int64) {
		for i, name := range []string{"a", "b", "c", "all"} {
			n[i] = s.used(name, 9)
		}
		return n
	}
	at := func(path string) core.Request { return &explained{path: path} }
	d := s.set.Check(at("a"))
	for i, step := range []struct {
		path   string
		counts [4]int64
		reason core.Reason
		lines  int
	}{
		{"a", [4]int64{1, 0, 0, 1}, core.ReasonNoRule, 0},
		{"none", [4]int64{1, 0, 0, 1}, core.ReasonNoRule, 0},
		{"b", [4]int64{1, 1, 0, 1}, core.ReasonWithinLimits, 1},
		{"a", [4]int64{1, 1, 0, 1}, core.ReasonNoRule, 0},
		{"c", [4]int64{1, 1, 1, 1}, core.ReasonWithinLimits, 1},
		{"b", [4]int64{1, 1, 1, 1}, core.ReasonNoRule, 0},
		{"closed", [4]int64{1, 1, 1, 1}, core.ReasonOverLimit, 0},
	} {
		d = s.set.Recheck(at(step.path), d)
		lines := 0
		for _, line := range d.AppendHeaders(nil) {
			if line.Name == "Ratelimit" {
				lines++
			}
		}
		if counts() != step.counts || d.Reason != step.reason || d.Allowed != (step.reason != core.ReasonOverLimit) || lines != step.lines {
			t.Errorf("step %d, /%s: %v with %d header lines, counts %v, want %v, %d and %v", i, step.path, d, lines, counts(), step.reason, step.lines, step.counts)
		}
	}
}

// used returns how many requests without a key a policy has counted.
func (s *site) used(policy string, quota int64) int64 {
	s.t.Helper()
	d, err := s.set.Limiter().Peek(s.t.Context(), 1, core.Hit{Rule: policy})
	if err != nil {
		s.t.Fatal(err)
	}
	return quota - d.Remaining
}

// One policy alone, and the policies that Only names, come back in the same way.
func TestOnePolicyAndNamedPoliciesCountOnce(t *testing.T) {
	s := newSite(t, "policies: [{name: a, match: {paths: [/a, /b]}, limits: 9/h}, {name: b, match: {paths: [/b]}, limits: 1/h}, {name: c, limits: 0/h}]")
	c, err := s.set.Only("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	named := c.(interface {
		core.Checker
		Recheck(r core.Request, before core.Decision) core.Decision
	})
	for i, want := range []bool{true, false} {
		d := named.Check(&explained{path: "a"})
		if !d.Allowed {
			t.Fatal(d)
		}
		if d = named.Recheck(&explained{path: "b"}, d); d.Allowed != want {
			t.Errorf("request %d: %v", i, d)
		}
	}
	for name, want := range map[string]int64{"a": 2, "b": 1} {
		if got := s.used(name, map[string]int64{"a": 9, "b": 1}[name]); got != want {
			t.Errorf("%s has counted %d requests, want %d", name, got, want)
		}
	}
}
