package mounting

import (
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// asked is a checker that counts its calls and returns decision.
type asked struct {
	core.Checker
	checks   int
	decision core.Decision
}

func (a *asked) Check(core.Request) core.Decision { a.checks++; return a.decision }

// rechecked is an asked with the method Recheck.
type rechecked struct {
	asked
	before []core.Decision
}

func (r *rechecked) Recheck(_ core.Request, before core.Decision) core.Decision {
	r.before = append(r.before, before)
	return core.Decision{Allowed: true, Reason: core.ReasonNoRule}
}

// route is a request that a router has matched to a route.
type route struct {
	core.Request
	pattern string
}

func (r route) Route() string { return r.pattern }

func routed(pattern string) core.Request { return route{pattern: pattern} }

// meet has a checker decide on a request whose last visit is v, as an adapter does,
// and returns the last visit now.
func meet(v *Visit, c core.Checker, r core.Request, t Target) (last *Visit, asked bool) {
	p, now := NewPlace("test", c), Origin{Target: t, Route: r.Route()}
	var d core.Decision
	if seen := v.Of(&p); seen == nil {
		d = c.Check(r)
	} else if d, asked = p.Check(seen, r, now); !asked {
		return v, false
	}
	last = p.NewVisit(&d, v)
	if last.Origin != nil {
		*last.Origin = now
	}
	return last, true
}

// A checker with Recheck decides again after the router has matched a route. Others do not.
func TestOnlyARecheckerDecidesAgainOnAnotherRoute(t *testing.T) {
	c, other := &rechecked{}, &asked{decision: core.Decision{Allowed: true, Reason: core.ReasonNoRule}}
	var v *Visit
	for _, step := range []struct {
		c       core.Checker
		pattern string
		want    bool
	}{
		{other, "", true}, {c, "", true}, {c, "", false},
		{c, "/items/{id}", true}, {c, "/items/{id}", false}, {other, "/items/{id}", false},
	} {
		var asked bool
		if v, asked = meet(v, step.c, routed(step.pattern), 1); asked != step.want {
			t.Errorf("%T at route %q: asked: %t, want %t", step.c, step.pattern, asked, step.want)
		}
	}
	if c.checks != 1 || len(c.before) != 1 || other.checks != 1 {
		t.Errorf("%d checks, %d rechecks, %d checks of the other", c.checks, len(c.before), other.checks)
	}
}

// It depends on the target and on what the checker has charged whether it decides again.
func TestACheckerDecidesAgainOnAnotherTarget(t *testing.T) {
	const first, second = Target(1), Target(2)
	for reason, again := range map[core.Reason]bool{core.ReasonWithinLimits: false, core.ReasonOverLimit: false, core.ReasonFailed: false, core.ReasonSkipped: true, core.ReasonNoRule: true} {
		c, other := &asked{decision: core.Decision{Allowed: true, Reason: reason}}, &asked{}
		var v *Visit
		visit := func(c core.Checker, at Target) (asked bool) {
			v, asked = meet(v, c, routed(""), at)
			return asked
		}
		if !visit(c, first) || !visit(other, second) || visit(c, first) || visit(other, second) {
			t.Errorf("%v: a target is decided on twice, or not at all", reason)
		}
		if got := visit(c, second); got != again || visit(c, second) {
			t.Errorf("%v: asked again about another target: %t, want %t once", reason, got, again)
		}
		if want := map[bool]int{false: 1, true: 2}[again]; c.checks != want || other.checks != 1 {
			t.Errorf("%v: %d and %d checks, want %d and 1", reason, c.checks, other.checks, want)
		}
	}
}

// Such a decision does not hide the earlier decision of the same checker.
func TestLastSkipsARecheckThatChargedNothing(t *testing.T) {
	c := &rechecked{asked: asked{decision: core.Decision{Allowed: true, Reason: core.ReasonWithinLimits, Limiter: "a"}}}
	var v *Visit
	for _, at := range []Target{1, 2, 2, 1} {
		v, _ = meet(v, c, routed(""), at)
	}
	if len(c.before) != 2 || c.before[0].Limiter != "a" || c.before[1].Reason != core.ReasonNoRule || c.checks != 1 {
		t.Errorf("%d checks, rechecks after %v", c.checks, c.before)
	}
	if d, found := v.Last(); !found || d.Limiter != "a" {
		t.Errorf("the last decision is %v", d)
	}
	if all := v.All(); len(all) != 1 || all[0].Limiter != "a" {
		t.Errorf("all decisions are %v", all)
	}
	if _, found := (*Visit)(nil).Last(); found {
		t.Error("a decision is found before the first visit")
	}
	none := &asked{decision: core.Decision{Reason: core.ReasonNoRule}}
	v, _ = meet(v, none, routed(""), 1)
	if d, found := v.Last(); !found || d.Reason != core.ReasonNoRule {
		t.Errorf("the only decision of a checker is hidden: %v", d)
	}
	if all := v.All(); len(all) != 2 || all[0].Limiter != "a" || all[1].Reason != core.ReasonNoRule {
		t.Errorf("the decisions of both checkers are %v", all)
	}
}

func TestDifferentMethodsAndPathsHaveDifferentTargets(t *testing.T) {
	seen := map[Target][3]string{}
	texts := []string{"", "GET", "POST", "/a", "/b", "/a/b", "/%61"}
	for _, method := range texts {
		for _, path := range texts {
			for _, escaped := range texts {
				parts := [3]string{method, path, escaped}
				target := TargetOf(method, path, escaped)
				if other, twice := seen[target]; twice {
					t.Errorf("%q and %q have the same target", other, parts)
				}
				if seen[target] = parts; target != TargetOf(method, path, escaped) {
					t.Errorf("%q has two targets", parts)
				}
			}
		}
	}
}

func BenchmarkTargetOf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		TargetOf("GET", "/api/items/12345", "")
	}
}
