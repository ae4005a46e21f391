package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// Which rules SetCost settles: those with a Cost.
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
		{"the hooks'", core.Config{Hooks: core.HookFuncs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 90, 90, false},
		{"the hooks' and a rule's", core.Config{Hooks: core.HookFuncs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", ten)}}, 90, 75, true},
		{"an estimate of nothing", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", func(core.Request) (int64, error) { return 0, nil })}}, 99, 75, true},
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
	}}, newClock())
	d := l.Check(&request{})
	d.SetCost(30)
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	for rule, want := range map[string]int64{"returned": 100, "cleared": 100, "kept": 70} {
		if got := left(t, l, rule, "k"); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

// httputil.ReverseProxy panics if the client hangs up: what the handler has said until then
// was done. A handler that says less and panics may not have done its work.
func TestAPanicChargesTheCostThatWasSetIfItIsMoreThanTheEstimate(t *testing.T) {
	ten := func(core.Request) (int64, error) { return 10, nil }
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: ten}}}, newClock())
	for cost, want := range map[int64]int64{25: 75, 10: 90, 3: 90, 0: 90} {
		if err := l.Reset(t.Context(), core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		d := l.Check(&request{})
		d.SetCost(cost)
		l.Settle(&request{}, d, core.Outcome{Status: 500, Panicked: true})
		if got := left(t, l, "r", "k"); got != want {
			t.Errorf("a cost of %d: %d left, want %d", cost, got, want)
		}
	}
}

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

// Adjust on the decision of a request settles what SetCost settles, and no rule that only counts.
func TestAdjustOfARequestLeavesRulesThatCountAlone(t *testing.T) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	skip := func(dst []byte, _ core.Request) ([]byte, error) { return dst, core.SkipRule }
	count := core.Rule{Name: "count", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}}
	weigh := core.Rule{Name: "weigh", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Cost: cost}
	skipped := weigh
	skipped.Key = skip
	for name, row := range map[string]struct {
		rules []core.Rule
		weigh int64 // left
	}{
		"one of two rules weighs":      {[]core.Rule{count, weigh}, 600},
		"the rule that weighs is left": {[]core.Rule{count, skipped}, 1000},
		"no rule weighs":               {[]core.Rule{count}, -1},
	} {
		for _, settled := range []bool{false, true} {
			l := newLimiter(t, core.Config{Rules: row.rules}, newClock())
			d := l.Check(&request{})
			settle := func() {
				if d.NeedsOutcome() {
					l.Settle(&request{}, d, core.Outcome{Status: 200})
				}
			}
			if settled {
				settle()
			}
			for range 2 {
				if err := l.Adjust(t.Context(), d, 400); err != nil {
					t.Error(err)
				}
			}
			settle()
			if got := left(t, l, "count", "k"); got != 999 {
				t.Errorf("%s, settled %t: %d are left of the rule that counts, want 999", name, settled, got)
			}
			if row.weigh >= 0 {
				if got := left(t, l, "weigh", "k"); got != row.weigh {
					t.Errorf("%s, settled %t: %d are left of the rule that weighs, want %d", name, settled, got, row.weigh)
				}
			}
		}
	}
}

// What Counts gives back is what the request was charged, whatever a handler says or does.
func TestAHandlerThatSettlesBesideCounts(t *testing.T) {
	for name, row := range map[string]struct {
		handler func(l *core.Limiter, d core.Decision) error
		counts  bool
		used    int64 // of the rule with Counts
		clears  int   // how often Clears is asked
	}{
		"more":                    {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 400) }, false, 500, 1},
		"more, and it counts":     {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 400) }, true, 900, 1},
		"a refund":                {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 0) }, false, 500, 1},
		"a refund, and it counts": {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 0) }, true, 500, 1},
		"a refund, then a cost": {func(l *core.Limiter, d core.Decision) error {
			err := l.Adjust(t.Context(), d, 0)
			d.SetCost(300)
			return err
		}, true, 500, 1},
		"a refund and an adjustment": {func(l *core.Limiter, d core.Decision) error {
			return errors.Join(l.Adjust(t.Context(), d, 0), l.Adjust(t.Context(), d, 300))
		}, true, 500, 1},
	} {
		asked := 0
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Cost: func(core.Request) (int64, error) { return 100, nil }, Counts: func(core.Request, core.Outcome) bool { return row.counts }},
			{Name: "f", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Clears: func(core.Request, core.Outcome) bool { asked++; return true }},
		}}, newClock())
		if _, err := l.Take(t.Context(), 500, core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		d := l.Check(&request{})
		if err := row.handler(l, d); err != nil {
			t.Error(err)
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		if got := 1000 - left(t, l, "r", "k"); got != row.used || asked != row.clears {
			t.Errorf("%s: %d are used, want %d; Clears was asked %d times, want %d", name, got, row.used, asked, row.clears)
		}
	}
}

// A store is never told to charge more than MaxQuota.
func TestACostAboveMaxQuotaMeansMaxQuota(t *testing.T) {
	for _, cost := range []int64{core.MaxQuota, core.MaxQuota + 1, math.MaxInt64} {
		for name, set := range map[string]func(l *core.Limiter, d core.Decision) error{
			"SetCost": func(l *core.Limiter, d core.Decision) error {
				d.SetCost(cost)
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return nil
			},
			"Adjust": func(l *core.Limiter, d core.Decision) error {
				err := l.Adjust(t.Context(), d, cost)
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return err
			},
			"Adjust after Settle": func(l *core.Limiter, d core.Decision) error {
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return l.Adjust(t.Context(), d, cost)
			},
		} {
			s := newFaulty()
			l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{
				Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: func(core.Request) (int64, error) { return 10, nil },
			}}}, nil)
			d := l.Check(&request{})
			if err := set(l, d); err != nil {
				t.Errorf("%s(%d): %v", name, cost, err)
			}
			if len(s.charged) != 1 || s.charged[0] != core.MaxQuota-10 {
				t.Errorf("%s(%d): the store charges %v, want %d", name, cost, s.charged, int64(core.MaxQuota-10))
			}
		}
	}
}
