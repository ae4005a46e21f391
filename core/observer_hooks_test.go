package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// A request of which a hook or key function panics is counted once, as what has been decided on
// it, or else as a failure. The panic goes on, and no slot is held.
func TestPanicsOfHooksAreObserved(t *testing.T) {
	panics := func([]byte, core.Request) ([]byte, error) { panic("boom") }
	disallowed := core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { panic("boom") }}
	rule := func(name string, quota int64, key core.KeyFunc) core.Rule {
		return core.Rule{Name: name, Key: key, Limits: []core.Limit{core.PerHour(quota)}}
	}
	a := rule("a", 1, static("k"))
	failed := "failed: floodgate: a hook or key function panicked"
	for name, row := range map[string]struct {
		config core.Config
		calls  int
		want   string
		stats  core.Stats
	}{
		"ShouldLimit":  {core.Config{Rules: []core.Rule{a}, Hooks: core.HookFuncs{ShouldLimitFunc: func(core.Request) bool { panic("boom") }}}, 1, failed, core.Stats{Failed: 1}},
		"KeyExtra":     {core.Config{Rules: []core.Rule{a}, Hooks: core.HookFuncs{KeyExtraFunc: func(core.Request) (string, error) { panic("boom") }}}, 1, failed, core.Stats{Failed: 1}},
		"Cost":         {core.Config{Rules: []core.Rule{a}, Hooks: core.HookFuncs{CostFunc: func(core.Request) (int64, error) { panic("boom") }}}, 1, failed, core.Stats{Failed: 1}},
		"Select":       {core.Config{Rules: []core.Rule{a}, RulesFor: func([]int, core.Request) ([]int, error) { panic("boom") }}, 1, failed, core.Stats{Failed: 1}},
		"a key":        {core.Config{Rules: []core.Rule{rule("a", 1, panics)}}, 1, failed, core.Stats{Failed: 1}},
		"a key of two": {core.Config{Rules: []core.Rule{a, rule("b", 1, panics)}}, 1, failed, core.Stats{Failed: 1}},
		"a denial":     {core.Config{Rules: []core.Rule{a}, Hooks: disallowed}, 2, "within limits of a, allowed; over limit of a", core.Stats{Allowed: 1, Denied: 1}},
		"a dry run":    {core.Config{Rules: []core.Rule{a}, DryRun: true, Hooks: disallowed}, 2, "within limits of a, allowed; over limit of a", core.Stats{Allowed: 1, Denied: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			row.config.Observer = observeFunc(func(_ string, rules []core.Rule) core.ObserverFuncs {
				return core.ObserverFuncs{Decided: func(_ context.Context, o core.Observation) {
					text := o.Reason.String()
					if o.Rule >= 0 {
						text += " of " + rules[o.Rule].Name
					}
					if o.Allowed {
						text += ", allowed"
					}
					if o.DryRun {
						text += ", dry run"
					}
					if o.Err != nil {
						text += ": " + o.Err.Error()
					}
					all = append(all, text)
				}}
			})
			l := newLimiter(t, row.config, nil)
			for i := range row.calls {
				func() {
					defer func() {
						if p := recover(); p != "boom" && (i == row.calls-1 || p != nil) {
							t.Errorf("call %d panicked with %v", i, p)
						}
					}()
					if d := l.Check(&request{}); !d.Allowed {
						l.Deny(&request{}, d)
					}
				}()
			}
			if got := strings.Join(all, "; "); got != row.want {
				t.Errorf("observed %q, want %q", got, row.want)
			}
			if got := l.Stats(); got != row.stats {
				t.Errorf("%+v, want %+v", got, row.stats)
			}
		})
	}
}

// Without an observer, such a request is counted, too.
func TestPanicsOfHooksAreCounted(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "a", Key: func([]byte, core.Request) ([]byte, error) { panic("boom") }, Limits: []core.Limit{core.PerHour(1)}}}}, nil)
	defer func() {
		if p := recover(); p != "boom" || l.Stats() != (core.Stats{Failed: 1}) {
			t.Error(fmt.Sprint(p, l.Stats()))
		}
	}()
	l.Check(&request{})
}
