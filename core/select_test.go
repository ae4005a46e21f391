package core_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// numbered returns rules that count every request.
func numbered(n int) []core.Rule {
	rules := make([]core.Rule, n)
	for i := range rules {
		rules[i] = core.Rule{Name: "r" + strconv.Itoa(i), Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}}
	}
	return rules
}

func TestOnlySelectedRulesAreAsked(t *testing.T) {
	const rules = 1000
	asked := make([]int, rules)
	c := core.Config{Rules: numbered(rules)}
	for i := range c.Rules {
		c.Rules[i].Key = func(dst []byte, _ core.Request) ([]byte, error) {
			asked[i]++
			return append(dst, 'k'), nil
		}
	}
	chosen := []int{3, 70, 999}
	c.RulesFor = func(dst []int, _ core.Request) ([]int, error) { return append(dst, chosen...), nil }
	l := newLimiter(t, c, newClock())
	d := l.Check(&request{})
	var names []string
	for s := range d.Limits() {
		names = append(names, s.Rule)
	}
	if want := []string{"r3", "r70", "r999"}; !d.Allowed || !slices.Equal(names, want) {
		t.Errorf("%v, rules %v: want %v", d, names, want)
	}
	for i, n := range asked {
		if want := slices.Contains(chosen, i); (n > 0) != want {
			t.Errorf("rule %d was asked %d times", i, n)
		}
	}
	if got := left(t, l, "r70", "k"); got != 9 {
		t.Errorf("%d left of a selected rule, want 9", got)
	}
	if got := left(t, l, "r71", "k"); got != 10 {
		t.Errorf("%d left of another rule, want 10", got)
	}
}

func TestSelect(t *testing.T) {
	fault := errors.New("broken")
	for _, row := range []struct {
		name   string
		choice []int
		err    error
		want   core.Reason
	}{
		{"one", []int{1}, nil, core.ReasonWithinLimits},
		{"none", nil, nil, core.ReasonNoRule},
		{"SkipRule", []int{1}, core.SkipRule, core.ReasonNoRule},
		{"a bad request", nil, core.ErrBadRequest, core.ReasonBadRequest},
		{"a fault", nil, fault, core.ReasonFailed},
		{"out of range", []int{3}, nil, core.ReasonFailed},
		{"negative", []int{-1}, nil, core.ReasonFailed},
		{"descending", []int{2, 1}, nil, core.ReasonFailed},
		{"twice", []int{1, 1}, nil, core.ReasonFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLimiter(t, core.Config{Log: (&lines{}).logger(), Rules: numbered(3), RulesFor: func(dst []int, _ core.Request) ([]int, error) {
				return append(dst, row.choice...), row.err
			}}, newClock())
			if d := l.Check(&request{}); d.Reason != row.want || d.Allowed != (row.want == core.ReasonWithinLimits || row.want == core.ReasonNoRule) {
				t.Errorf("%v, %v: want %v", d, d.Err, row.want)
			}
		})
	}
}

func TestSelectMayReadTheBody(t *testing.T) {
	rules := numbered(4)
	rules[2].Key = bodyKey
	l := newLimiter(t, core.Config{Rules: rules, RulesFor: func(dst []int, r core.Request) ([]int, error) {
		b, err := r.Body(10)
		if err != nil {
			return dst, err
		}
		for _, c := range b {
			dst = append(dst, int(c-'0'))
		}
		return dst, nil
	}}, newClock())
	d := l.Check(&request{body: "023"})
	if !d.Allowed || d.Reason != core.ReasonWithinLimits {
		t.Fatalf("%v, %v", d, d.Err)
	}
	for rule, want := range map[string]int64{"r0/k": 9, "r1/k": 10, "r2/023": 9, "r3/k": 9} {
		name, key := rule[:2], rule[3:]
		if got := left(t, l, name, key); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

func TestARuleCanHaveItsOwnCost(t *testing.T) {
	s := newCounting()
	tokens := core.Limit{Quota: 1000, Window: core.PerMinute(1).Window}
	l := newLimiter(t, core.Config{Name: "api", Store: s, Rules: []core.Rule{
		{Name: "requests", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}},
		{Name: "tokens", Key: static("k"), Limits: []core.Limit{tokens}, Cost: func(r core.Request) (int64, error) {
			b, err := r.Body(100)
			return int64(len(b)) * 100, err
		}},
	}}, nil)
	d := l.Check(&request{body: "abc"})
	if a, b := left(t, l, "requests", "k"), left(t, l, "tokens", "k"); !d.Allowed || a != 9 || b != 700 {
		t.Errorf("%v: %d and %d left, want 9 and 700", d, a, b)
	}
	if d := l.Check(&request{body: "12345678"}); d.Allowed || d.Rule() != "tokens" || d.Cost != 800 {
		t.Errorf("%v (cost %d): want it denied for its 800 tokens", d, d.Cost)
	}
	if a, b := left(t, l, "requests", "k"), left(t, l, "tokens", "k"); a != 9 || b != 700 {
		t.Errorf("after a denied request %d and %d left, want 9 and 700", a, b)
	}
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Fatal(err)
	}
	if a, b := left(t, l, "requests", "k"), left(t, l, "tokens", "k"); a != 10 || b != 1000 {
		t.Errorf("after the refund %d and %d left, want 10 and 1000", a, b)
	}
}

func TestErrorsOfARulesCost(t *testing.T) {
	fault := errors.New("broken")
	for _, row := range []struct {
		cost   int64
		err    error
		want   core.Reason
		others int64 // left of the other rule
		own    int64 // left of the rule with the cost
	}{
		{0, nil, core.ReasonWithinLimits, 9, 10},
		{-1, nil, core.ReasonFailed, 10, 10},
		{0, fault, core.ReasonFailed, 10, 10},
		// A bad request costs one hit, whatever else the function returns.
		{0, core.ErrBadRequest, core.ReasonBadRequest, 9, 9},
		{7, core.ErrBadRequest, core.ReasonBadRequest, 9, 9},
	} {
		l := newLimiter(t, core.Config{Log: (&lines{}).logger(), Rules: []core.Rule{
			{Name: "plain", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}},
			{Name: "costly", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}, Cost: func(core.Request) (int64, error) { return row.cost, row.err }},
		}}, newClock())
		d := l.Check(&request{})
		if d.Reason != row.want {
			t.Errorf("cost %d, error %v: %v (%v), want %v", row.cost, row.err, d.Reason, d.Err, row.want)
		}
		if got := left(t, l, "plain", "k"); got != row.others {
			t.Errorf("cost %d, error %v: %d left of the other rule, want %d", row.cost, row.err, got, row.others)
		}
		if got := left(t, l, "costly", "k"); got != row.own {
			t.Errorf("cost %d, error %v: %d left of the rule with the cost, want %d", row.cost, row.err, got, row.own)
		}
	}
}

func TestHeadersOfARule(t *testing.T) {
	rules := numbered(3)
	rules[1].Headers, rules[2].Headers = core.HeadersOff, core.HeadersXSeconds|core.HeadersDraft10
	rules[2].Limits = []core.Limit{core.PerMinute(5)} // it decides
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	got := ""
	for _, h := range l.Check(&request{}).AppendHeaders(nil) {
		got += h.Name + ": " + h.Value + "\n"
	}
	const want = "Ratelimit-Policy: \"r0\";q=10;w=60, \"r2\";q=5;w=60\nRatelimit: \"r0\";r=9;t=60, \"r2\";r=4;t=60\n" +
		"X-Ratelimit-Limit: 5\nX-Ratelimit-Remaining: 4\nX-Ratelimit-Reset: 60\n"
	if got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
	for i := range rules {
		rules[i].Headers = core.HeadersOff
	}
	if err := l.Reconfigure(core.Config{Rules: rules}); err != nil {
		t.Fatal(err)
	}
	if h := l.Check(&request{}).AppendHeaders(nil); len(h) != 0 {
		t.Errorf("%v: want no headers", h)
	}
	rules[1].Headers = 200
	if err := l.Reconfigure(core.Config{Rules: rules}); !errors.Is(err, core.ErrConfig) {
		t.Errorf("%v", err)
	}
}

func TestTheKeyOfADecision(t *testing.T) {
	long := fmt.Sprint(make([]int, 100))
	for _, extra := range []string{"", "extra"} {
		for _, key := range []string{"", "alice", "a\x00b\x01", long} {
			l := newLimiter(t, core.Config{Hooks: hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return extra, nil }}, Rules: []core.Rule{
				{Name: "other", Key: static("other"), Limits: []core.Limit{core.PerMinute(100)}},
				{Name: "user", Key: static(key), Limits: []core.Limit{core.PerMinute(10)}},
			}}, newClock())
			d := l.Check(&request{})
			if d.Rule() != "user" || d.Key() != key {
				t.Errorf("key %q, extra %q: %q of rule %q", key, extra, d.Key(), d.Rule())
			}
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: "user", Key: key})
			if err != nil || d.Key() != key {
				t.Errorf("taken: key %q: %q, %v", key, d.Key(), err)
			}
		}
	}
	if got := (core.Decision{}).Key(); got != "" {
		t.Errorf("%q", got)
	}
}
