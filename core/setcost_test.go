package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// Which rules SetCost settles: those with a Cost, or else all if the hooks have one.
func TestWhatSetCostSettles(t *testing.T) {
	ten := func(core.Request) (int64, error) { return 10, nil }
	rule := func(name string, cost func(core.Request) (int64, error)) core.Rule {
		return core.Rule{Name: name, Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost}
	}
	for _, row := range []struct {
		name   string
		config core.Config
		a, b   int64 // left after SetCost(25)
		said   bool
	}{
		{"no cost", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 99, 99, false},
		{"one rule's", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", ten)}}, 99, 75, true},
		{"both rules'", core.Config{Rules: []core.Rule{rule("a", ten), rule("b", ten)}}, 75, 75, true},
		{"the hooks'", core.Config{Hooks: core.HookFuncs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 75, 75, true},
		{"the hooks' and a rule's", core.Config{Hooks: core.HookFuncs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", ten)}}, 90, 75, true},
		{"hooks without one", core.Config{Hooks: core.HookFuncs{}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 99, 99, false},
		{"embedded hooks", core.Config{Hooks: audit{}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 99, 99, false},
		{"an estimate of nothing", core.Config{Hooks: core.HookFuncs{CostFunc: func(core.Request) (int64, error) { return 0, nil }}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 75, 75, true},
	} {
		l := newLimiter(t, row.config, newClock())
		d := l.Check(&request{})
		if said := d.SetCost(25); said != row.said || d.Estimated() != row.said {
			t.Errorf("%s: SetCost %t, Estimated %t, want %t", row.name, said, d.Estimated(), row.said)
		}
		if d.NeedsOutcome() {
			l.Settle(&request{}, d, core.Outcome{Status: 200})
			l.Settle(&request{}, d, core.Outcome{Status: 200})
		}
		if a, b := left(t, l, "a", "k"), left(t, l, "b", "k"); a != row.a || b != row.b {
			t.Errorf("%s: %d and %d left, want %d and %d", row.name, a, b, row.a, row.b)
		}
	}
}

// What Counts and Clears decide comes before the cost.
func TestSetCostBesideCountsAndClears(t *testing.T) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	yes, no := func(core.Request, core.Outcome) bool { return true }, func(core.Request, core.Outcome) bool { return false }
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: no},
		{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Clears: yes},
		{Name: "kept", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: yes},
		{Name: "shadow", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Shadow: true},
	}}, newClock())
	d := l.Check(&request{})
	d.SetCost(30)
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	for rule, want := range map[string]int64{"returned": 100, "cleared": 100, "kept": 70, "shadow": 70} {
		if got := left(t, l, rule, "k"); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

type audit struct{ core.DefaultHooks }

func ExampleDecision_SetCost() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: static("alice"), Limits: []core.Limit{core.PerHour(1000)},
		Cost: func(core.Request) (int64, error) { return 200, nil }, // an estimate
	}}}))
	r := &request{}
	d := limiter.Check(r)
	d.SetCost(340)                                  // an adapter's SetCost does this for a handler
	limiter.Settle(r, d, core.Outcome{Status: 200}) // an adapter does this after the handler
	d, _ = limiter.Peek(context.Background(), 0, core.Hit{Rule: "words", Key: "alice"})
	fmt.Println(d.Remaining)
	// Output: 660
}
