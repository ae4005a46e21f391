package core_test

import (
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A take of cost 0 asks and charges nothing: it begins no window either.
func TestCost0BeginsNoWindow(t *testing.T) {
	for name, rules := range map[string][]core.Rule{
		"one limit":  {{Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}}}},
		"two limits": {{Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}, core.PerHour(9)}}},
		"two rules": {
			{Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: 5, Window: time.Minute, Algorithm: core.FixedWindow}}},
			{Name: "s", Key: static("k"), Limits: []core.Limit{core.PerHour(9)}},
		},
	} {
		c := newClock()
		store := core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Now}))
		l := newLimiter(t, core.Config{Store: store, Rules: rules}, nil)
		take := func(cost int64) core.Decision {
			t.Helper()
			hits := []core.Hit{{Rule: "r", Key: "k"}}
			if len(rules) > 1 {
				hits = append(hits, core.Hit{Rule: "s", Key: "k"})
			}
			d, err := l.Take(t.Context(), cost, hits...)
			if err != nil || !d.Allowed {
				t.Fatalf("%s: %v, %v", name, d, err)
			}
			for s := range d.Limits() {
				if s.Limit.Algorithm == core.FixedWindow {
					d.Remaining, d.ResetAfter, d.MoreAfter, d.RetryAfter = s.Remaining, s.ResetAfter, s.MoreAfter, s.RetryAfter
				}
			}
			return d
		}
		if take(0); store.Len() != 0 {
			t.Errorf("%s: %d keys", name, store.Len())
		}
		for range 2 { // the second time, the key is known
			take(0)
			c.advance(45 * time.Second)
			if d := take(1); d.ResetAfter != time.Minute || d.Remaining != 4 {
				t.Errorf("%s: reset after %v and %d left, want 1m0s and 4", name, d.ResetAfter, d.Remaining)
			}
			c.advance(2 * time.Minute)
		}
	}
}

func TestNoHitsAreNoOperation(t *testing.T) {
	s := newCounting()
	s.fault = errFault
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	if d, err := l.Take(t.Context(), 1); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule || s.takes != 0 {
		t.Errorf("%v, %v, %d operations", d, err, s.takes)
	}
	if err := l.Reset(t.Context()); err != nil || s.resets != 0 {
		t.Errorf("%v, %d operations", err, s.resets)
	}
}

// The name of a rule that does not exist is an error, whatever other rule knows the
// key.
func TestAHitOfAnUnknownRule(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
	for _, rule := range []string{"r", "s", "", "R"} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: rule, Key: "k"})
		if ok := rule == "r"; ok != (err == nil) || !ok && (!errors.Is(err, core.ErrUnknownRule) || d.Allowed) {
			t.Errorf("rule %q: %v, %v", rule, d, err)
		}
	}
	if got := left(t, l, "r", "k"); got != 4 {
		t.Errorf("%d left, want 4", got)
	}
}

// A decision that no limit was applied for has no headers of limits.
func TestADecisionWithoutALimitHasNoRateHeaders(t *testing.T) {
	for name, headers := range map[string]core.Headers{"draft 10": core.HeadersDraft10, "draft 7": core.HeadersDraft07, "draft 3": core.HeadersDraft03, "X": core.HeadersXSeconds} {
		l := newLimiter(t, core.Config{Headers: headers, Rules: []core.Rule{{Key: fails(core.SkipRule), Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
		if got := l.Check(&request{}).AppendHeaders(nil); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
		l = newLimiter(t, core.Config{Headers: headers, Rules: []core.Rule{{Key: fails(core.ErrBadRequest), Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
		if got := l.Check(&request{}).AppendHeaders(nil); len(got) != 1 || got[0].Name != "Cache-Control" {
			t.Errorf("%s, a bad request: %v", name, got)
		}
	}
}

// The policy has the limits that applied.
func TestThePolicyOfALimiterOfWhichOneRuleApplies(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "get", Key: orSkip, Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "all", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}},
	}}, newClock())
	for method, want := range map[string]string{"": `"all";q=9;w=60`, "GET": `"get";q=5;w=60, "all";q=9;w=60`} {
		got := l.Check(&request{method: method}).AppendHeaders(nil)
		if len(got) == 0 || got[0] != (core.Header{Name: "Ratelimit-Policy", Value: want}) {
			t.Errorf("%q: %v, want %s", method, got, want)
		}
	}
}

func TestWhichDecisionsNeedTheOutcome(t *testing.T) {
	counts := func(core.Request, core.Outcome) bool { return true }
	rule := func(name string, key core.KeyFunc) core.Rule {
		return core.Rule{Name: name, Key: key, Limits: []core.Limit{core.PerMinute(5)}}
	}
	get, all := rule("get", orSkip), rule("all", static("k"))
	for _, row := range []struct {
		name           string
		counts, clears bool // of the rule get
		method         string
		cost           func(core.Request) (int64, error) // of the rule get
		want           bool
	}{
		{"no rule has a function", false, false, "GET", nil, false},
		{"Counts", true, false, "GET", nil, true},
		{"Clears", false, true, "GET", nil, true},
		{"both", true, true, "GET", nil, true},
		{"a rule that is not for the request", true, true, "", nil, false},
		{"a cost that is an estimate", false, false, "GET", func(core.Request) (int64, error) { return 1, nil }, true},
		{"a cost of a rule that is not for the request", false, false, "", func(core.Request) (int64, error) { return 1, nil }, false},
		{"an estimate of 0", false, false, "GET", func(core.Request) (int64, error) { return 0, nil }, true},
	} {
		get.Counts, get.Clears, get.Cost = nil, nil, row.cost
		if row.counts {
			get.Counts = counts
		}
		if row.clears {
			get.Clears = counts
		}
		for _, rules := range [][]core.Rule{{get, all}, {all, get}, {get}} {
			l := newLimiter(t, core.Config{Rules: rules}, newClock())
			if d := l.Check(&request{method: row.method}); d.NeedsOutcome() != row.want {
				t.Errorf("%s, %d rules: %t", row.name, len(rules), d.NeedsOutcome())
			}
		}
	}
}

// orSkip keys by the method, and skips requests without one.
func orSkip(dst []byte, r core.Request) ([]byte, error) {
	if r.Method() == "" {
		return dst, core.SkipRule
	}
	return append(dst, r.Method()...), nil
}
