package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// rehearsals is a hook that notes what shadow rules would have denied.
type rehearsals struct {
	core.DefaultHooks
	seen []core.Decision
}

func (h *rehearsals) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	h.seen = append(h.seen, d)
	return h.DefaultHooks.OnDisallowed(r, d)
}

func TestAShadowRuleDeniesNothing(t *testing.T) {
	hooks := &rehearsals{}
	l := newLimiter(t, core.Config{Hooks: hooks, Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}},
		{Name: "shadow", Key: static("k"), Limits: []core.Limit{core.PerMinute(2)}, Shadow: true},
	}}, newClock())
	for i := range 5 {
		d := l.Check(&request{})
		if want := i < 3; d.Allowed != want || d.Rule != "enforced" {
			t.Errorf("request %d: %v", i+1, d)
		}
		if want := i == 2; d.Rehearsal != want {
			t.Errorf("request %d: Rehearsal %v, want %v", i+1, d.Rehearsal, want)
		}
		for s := range d.Limits() {
			if s.Rule == "shadow" {
				t.Errorf("request %d: the decision lists a limit of the shadow rule", i+1)
			}
		}
	}
	// The third to fifth request are over the shadow rule's limit.
	if len(hooks.seen) != 3 {
		t.Fatalf("%d decisions were reported, want 3: %v", len(hooks.seen), hooks.seen)
	}
	for _, d := range hooks.seen {
		if d.Rule != "shadow" || !d.Rehearsal || d.Reason != core.ReasonOverLimit {
			t.Errorf("reported: %v", d)
		}
	}
	if s := l.Stats(); s.Allowed != 2 || s.Rehearsed != 1 || s.Denied != 2 {
		t.Errorf("%+v", s)
	}
}

func TestShadowRulesCountWhatOtherRulesDeny(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}},
		{Name: "shadow", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Shadow: true},
	}}, newClock())
	for range 4 {
		l.Check(&request{})
	}
	if got := left(t, l, "shadow", "k"); got != 1 {
		t.Errorf("%d left of the shadow rule, want 1", got)
	}
}

func TestAShadowRuleReadsNoBodyOfADeniedRequest(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}},
		{Name: "shadow", Key: bodyKey, Limits: []core.Limit{core.PerMinute(5)}, Shadow: true},
	}}, newClock())
	first, second := &request{body: "a"}, &request{body: "a"}
	l.Check(first)
	l.Check(second)
	if first.reads != 1 || second.reads != 0 {
		t.Errorf("the body of the allowed request was read %d times, of the denied one %d times: want 1 and 0", first.reads, second.reads)
	}
	if got := left(t, l, "shadow", "a"); got != 4 {
		t.Errorf("%d left of the shadow rule, want 4", got)
	}
}

func TestFailuresOfShadowRulesDenyNothing(t *testing.T) {
	for name, err := range map[string]error{"a fault": errors.New("broken"), "a bad request": core.ErrBadRequest} {
		t.Run(name, func(t *testing.T) {
			hooks := &rehearsals{}
			l := newLimiter(t, core.Config{Log: (&lines{}).logger(), Hooks: hooks, Rules: []core.Rule{
				{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(2)}},
				{Name: "shadow", Key: fails(err), Limits: []core.Limit{core.PerMinute(5)}, Shadow: true},
			}}, newClock())
			if d := l.Check(&request{}); !d.Allowed || !d.Rehearsal || d.Remaining != 1 {
				t.Errorf("%v", d)
			}
			if len(hooks.seen) != 1 || !errors.Is(hooks.seen[0].Err, err) {
				t.Errorf("reported: %v", hooks.seen)
			}
		})
	}
}

// If Select fails, it is not known which shadow rules apply: none is asked.
func TestNoShadowRuleIsAskedIfSelectFails(t *testing.T) {
	asked := 0
	l := newLimiter(t, core.Config{Log: (&lines{}).logger(), Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}},
		{Name: "shadow", Key: func(dst []byte, _ core.Request) ([]byte, error) { asked++; return append(dst, 'k'), nil }, Limits: []core.Limit{core.PerMinute(3)}, Shadow: true},
	}, Select: func(dst []int, _ core.Request) ([]int, error) { return append(dst, 0, 1), errors.New("broken") }}, newClock())
	d := l.Check(&request{})
	if _, found := d.Shadow(); d.Reason != core.ReasonFailed || found || asked != 0 {
		t.Errorf("%v, a decision of the shadow rule: %t, its key function was called %d times", d, found, asked)
	}
	if got := left(t, l, "shadow", "k"); got != 3 {
		t.Errorf("%d left of the shadow rule, want 3", got)
	}
}

func TestHeadersNameNoShadowRule(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(3)}},
		{Name: "shadow", Key: static("k"), Limits: []core.Limit{core.PerMinute(2)}, Shadow: true},
	}}, newClock())
	if got := headerText(l.Check(&request{})); strings.Contains(got, "shadow") || !strings.Contains(got, "enforced") {
		t.Error(got)
	}
}

func TestShadowRulesAreSettledAndRefunded(t *testing.T) {
	failed := func(_ core.Request, o core.Outcome) bool { return o.Status >= 400 }
	config := core.Config{Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "shadow", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Shadow: true, Counts: failed},
	}}
	l := newLimiter(t, config, newClock())
	check := func(status int, enforced, shadow int64) {
		t.Helper()
		r := &request{}
		d := l.Check(r)
		if !d.NeedsOutcome() {
			t.Fatal("the decision does not need the outcome")
		}
		l.Settle(r, d, core.Outcome{Status: status})
		l.Settle(r, d, core.Outcome{Status: status})
		if a, b := left(t, l, "enforced", "k"), left(t, l, "shadow", "k"); a != enforced || b != shadow {
			t.Errorf("status %d: %d and %d left, want %d and %d", status, a, b, enforced, shadow)
		}
	}
	check(200, 4, 5)
	check(401, 3, 4)

	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "enforced", Key: "k"}, core.Hit{Rule: "shadow", Key: "k"})
	if err != nil || !d.Allowed || d.Rule != "enforced" {
		t.Fatalf("%v, %v", d, err)
	}
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Fatal(err)
	}
	if a, b := left(t, l, "enforced", "k"), left(t, l, "shadow", "k"); a != 3 || b != 4 {
		t.Errorf("after the refund %d and %d left, want 3 and 4", a, b)
	}
}

func TestTakingHitsOfShadowRules(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "enforced", Limits: []core.Limit{core.PerMinute(10)}},
		{Name: "shadow", Limits: []core.Limit{core.PerMinute(2)}, Shadow: true},
	}}, newClock())
	for i := range 4 {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "shadow", Key: "k"}, core.Hit{Rule: "enforced", Key: "k"})
		if err != nil || !d.Allowed || d.Rule != "enforced" || d.Rehearsal != (i >= 2) {
			t.Errorf("take %d: %v, %v", i+1, d, err)
		}
	}
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "shadow", Key: "k"})
	if err != nil || !d.Allowed || !d.Rehearsal || d.Rule != "shadow" || d.Remaining != 0 {
		t.Errorf("the shadow rule alone: %v, %v", d, err)
	}
	d, err = l.Take(t.Context(), 7, core.Hit{Rule: "shadow", Key: "k"}, core.Hit{Rule: "enforced", Key: "k"})
	if err != nil || d.Allowed || d.Rehearsal || d.Rule != "enforced" {
		t.Errorf("denied by both: %v, rehearsal %t, %v", d, d.Rehearsal, err)
	}
	if s := l.Stats(); s.Allowed != 2 || s.Rehearsed != 3 || s.Denied != 1 {
		t.Errorf("each take is counted once: %+v", s)
	}
}

func ExampleRule_shadow() {
	strict := core.Rule{Name: "strict", Limits: []core.Limit{core.PerMinute(1)}, Shadow: true}
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
		strict,
	}}))
	for range 2 {
		d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "42"}, core.Hit{Rule: "strict", Key: "42"})
		fmt.Println(d.Allowed, d.Rehearsal)
	}
	// Output:
	// true false
	// true true
}

func TestTheDecisionOfShadowRulesBesideTheOther(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "enforced", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "shadow", Key: orSkip, Limits: []core.Limit{core.PerMinute(1)}, Shadow: true},
	}}, newClock())
	r := &request{method: "GET"}
	for _, allowed := range []bool{true, false} {
		d := l.Check(r)
		s, found := d.Shadow()
		if !d.Allowed || !found || s.Allowed != allowed || s.Rule != "shadow" || s.Limiter != d.Limiter {
			t.Errorf("%v; of the shadow rule: %v, %t; want allowed %t", d, s, found, allowed)
		}
	}
	if s, found := l.Check(&request{}).Shadow(); found {
		t.Errorf("%v for a request that no shadow rule is for", s)
	}
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "enforced", Key: "j"})
	if s, found := d.Shadow(); found || err != nil {
		t.Errorf("%v, %v for hits of no shadow rule", s, err)
	}
	d, err = l.Take(t.Context(), 1, core.Hit{Rule: "enforced", Key: "j"}, core.Hit{Rule: "shadow", Key: "j"})
	if s, found := d.Shadow(); !found || s.Rule != "shadow" || err != nil {
		t.Errorf("%v, %t, %v", s, found, err)
	}
}

// orSkip keys by the method, and skips requests without one.
func orSkip(dst []byte, r core.Request) ([]byte, error) {
	if r.Method() == "" {
		return dst, core.SkipRule
	}
	return append(dst, r.Method()...), nil
}
