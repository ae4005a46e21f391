package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// noted records the order in which the limiter calls its key functions.
func noted(calls *[]string, name string, f core.KeyFunc) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		*calls = append(*calls, name)
		return f(dst, r)
	}
}

func TestTheOrderOfQuestions(t *testing.T) {
	var calls []string
	hooks := core.HookFuncs{
		ShouldLimitFunc: func(core.Request) bool { calls = append(calls, "should"); return true },
		KeyExtraFunc:    func(core.Request) (string, error) { calls = append(calls, "extra"); return "", nil },
		CostFunc:        func(core.Request) (int64, error) { calls = append(calls, "cost"); return 1, nil },
	}
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "l", Store: s, Hooks: hooks, Rules: []core.Rule{
		{Name: "body", Key: noted(&calls, "body", bodyKey), Limits: []core.Limit{core.PerMinute(100)}},
		{Name: "ip", Key: noted(&calls, "ip", static("ip")), Limits: []core.Limit{core.PerMinute(1)}},
	}}, nil)

	r := &request{body: "alice"}
	if d := l.Check(r); !d.Allowed || r.reads != 1 || s.takes != 2 {
		t.Errorf("%v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got, want := strings.Join(calls, " "), "should extra cost body ip extra cost body ip"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}

	s.takes = 0
	r = &request{body: "alice"}
	if d := l.Check(r); d.Allowed || d.Rule() != "ip" || r.reads != 0 || s.takes != 1 {
		t.Errorf("over the address limit: %v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got := left(t, l, "body", "alice"); got != 99 {
		t.Errorf("%d left for the body's key, want 99", got)
	}
}

func TestErrorsOfKeyFunctions(t *testing.T) {
	ip := core.Rule{Name: "ip", Key: static("ip"), Limits: []core.Limit{core.PerMinute(2)}}
	with := func(f core.KeyFunc) *core.Limiter {
		return newLimiter(t, core.Config{Rules: []core.Rule{ip, {Name: "x", Key: f, Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
	}
	t.Run("SkipRule", func(t *testing.T) {
		l := with(fails(fmt.Errorf("nobody: %w", core.SkipRule)))
		if d := l.Check(&request{}); !d.Allowed || d.Rule() != "ip" {
			t.Error(d)
		}
		only := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(core.SkipRule), Limits: []core.Limit{core.PerMinute(0)}}}}, nil)
		if d := only.Check(&request{}); !d.Allowed || d.Reason != core.ReasonNoRule || len(d.AppendHeaders(nil)) != 0 {
			t.Error(d)
		}
	})
	t.Run("ErrBadRequest charges the others", func(t *testing.T) {
		l := with(fails(fmt.Errorf("twice: %w", core.ErrBadRequest)))
		for i, want := range []core.Reason{core.ReasonBadRequest, core.ReasonBadRequest, core.ReasonOverLimit} {
			d := l.Check(&request{})
			if d.Allowed || d.Reason != want {
				t.Errorf("request %d: %v", i+1, d)
			}
			if den := l.Deny(&request{}, d); den.Status != map[core.Reason]int{core.ReasonBadRequest: 400, core.ReasonOverLimit: 429}[want] {
				t.Errorf("request %d: status %d", i+1, den.Status)
			}
		}
	})
	t.Run("any other", func(t *testing.T) {
		l := with(fails(errFault))
		d := l.Check(&request{})
		if d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, errFault) || left(t, l, "ip", "ip") != 2 {
			t.Errorf("%v, %d left", d, left(t, l, "ip", "ip"))
		}
		if den := l.Deny(&request{}, d); den.Status != 503 || strings.Contains(string(den.Body), "10.1.2.3") {
			t.Errorf("%d %s", den.Status, den.Body)
		}
	})
	t.Run("a body that cannot be read", func(t *testing.T) {
		l := with(bodyKey)
		if d := l.Check(&request{bodyErr: errFault}); d.Reason != core.ReasonFailed {
			t.Error(d)
		}
	})
}

// A key function that returns a slice of its own, and not the one it was given.
func TestAKeyFunctionThatIgnoresWhatItIsGiven(t *testing.T) {
	own := func(key string) core.KeyFunc {
		return func([]byte, core.Request) ([]byte, error) { return []byte(key), nil }
	}
	limits := []core.Limit{core.PerMinute(5)}
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "a", Key: own("a long key"), Limits: limits}, {Name: "b", Key: own("k"), Limits: limits}, {Name: "c", Key: static("key"), Limits: limits},
	}}, newClock())
	for range 2 {
		l.Check(&request{})
	}
	for rule, key := range map[string]string{"a": "a long key", "b": "k", "c": "key"} {
		if got := left(t, l, rule, key); got != 3 {
			t.Errorf("rule %q: %d left, want 3", rule, got)
		}
	}
}

// A key function that keeps quiet about an error of Body counts by the body all the same: what it
// returns before the body can be read is not used.
func TestAKeyFunctionThatIgnoresAnErrorOfBody(t *testing.T) {
	quiet := func(dst []byte, r core.Request) ([]byte, error) {
		b, _ := r.Body(100)
		return append(dst, b...), nil
	}
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: quiet, Limits: []core.Limit{core.PerHour(1)}}}}, newClock())
	for _, body := range []string{"alice", "bob"} {
		if d := l.Check(&request{body: body}); !d.Allowed || d.Key() != body {
			t.Errorf("the body %q: %v, key %q", body, d, d.Key())
		}
	}
}

func TestDryRun(t *testing.T) {
	var heard []core.Decision
	l := newLimiter(t, core.Config{
		DryRun: true,
		Hooks: core.HookFuncs{OnDisallowedFunc: func(_ core.Request, d core.Decision) core.Denial {
			heard = append(heard, d)
			return core.Denial{}
		}},
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}},
	}, newClock())
	for i, dryRun := range []bool{false, true, true} {
		if d := l.Check(&request{}); !d.Allowed || d.DryRun != dryRun {
			t.Errorf("request %d: %v", i+1, d)
		}
	}
	if len(heard) != 2 || heard[0].Allowed || !heard[0].DryRun || !strings.Contains(heard[0].String(), "would deny") {
		t.Errorf("the hook heard %v", heard)
	}
	counted := newLimiter(t, core.Config{DryRun: true, Rules: []core.Rule{
		{Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(_ core.Request, o core.Outcome) bool { return o.Status == 401 }},
		{Name: "bad", Key: fails(core.ErrBadRequest), Limits: []core.Limit{core.PerMinute(1)}},
	}}, newClock())
	counted.Settle(&request{}, counted.Check(&request{}), core.Outcome{Status: 401})
	if got := left(t, counted, "failures", "k"); got != 4 {
		t.Errorf("a bad request that is let through counts by what becomes of it: %d left, want 4", got)
	}
	for name, key := range map[string]core.KeyFunc{"a fault": fails(errFault), "a bad request": fails(core.ErrBadRequest)} {
		l := newLimiter(t, core.Config{DryRun: true, Rules: []core.Rule{{Key: key, Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
		if d := l.Check(&request{}); !d.Allowed || !d.DryRun || d.Err == nil {
			t.Errorf("%s denies in a dry run: %v", name, d)
		}
	}
	if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil || !d.Allowed || !d.DryRun {
		t.Errorf("%v, %v", d, err)
	}
	if got := l.Stats(); got.DryRun != 3 || got.Allowed != 1 || got.Denied != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSettle(t *testing.T) {
	c, s := newClock(), newCounting()
	s.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Now}))
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "all", Key: static("k"), Limits: []core.Limit{core.PerMinute(20)}},
		{
			Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)},
			Counts: func(_ core.Request, o core.Outcome) bool { return o.Status >= 400 && o.Status < 500 },
			Clears: func(_ core.Request, o core.Outcome) bool { return o.Status < 400 },
		},
	}}, nil)
	want := func(what string, all, failures int64) {
		t.Helper()
		if a, f := left(t, l, "all", "k"), left(t, l, "failures", "k"); a != all || f != failures {
			t.Errorf("%s: %d and %d left, want %d and %d", what, a, f, all, failures)
		}
	}
	check := func() core.Decision {
		t.Helper()
		d := l.Check(&request{})
		if !d.Allowed || !d.NeedsOutcome() {
			t.Fatal(d)
		}
		return d
	}
	d := check()
	want("reserved before the handler", 19, 4)
	l.Settle(&request{}, d, core.Outcome{Status: 401})
	want("a failure stays", 19, 4)
	d = check()
	l.Settle(&request{}, d, core.Outcome{Status: 500})
	want("neither", 18, 4)
	l.Settle(&request{}, d, core.Outcome{Status: 500})
	want("settled twice", 18, 4)
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	want("settled, and then refunded", 18, 4)
	l.Settle(&request{}, check(), core.Outcome{Status: 200})
	want("a success clears", 17, 5)

	late := check()
	c.advance(3 * time.Minute)
	check()
	want("in a new window", 19, 4)
	l.Settle(&request{}, late, core.Outcome{Status: 500})
	want("settled after its window", 19, 4)

	if d := l.Check(&request{}); d.NeedsOutcome() {
		l.Settle(&request{}, core.Decision{}, core.Outcome{}) // of nothing
	}
	if d, _ := l.Take(t.Context(), 1, core.Hit{Rule: "failures", Key: "k"}); d.NeedsOutcome() {
		t.Error("a Take wants to know an outcome")
	}
}

// A request that may not wait is denied by its limit, whether its client is still there or not.
func TestADenialAfterTheClientHasGone(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, newClock())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, want := range []bool{true, false, false} {
		if d := l.Check(&request{ctx: ctx}); d.Allowed != want || d.Err != nil {
			t.Errorf("%v, %v, want allowed %t and no error", d, d.Err, want)
		}
	}
}

func ExampleConfig_dryRun() {
	limiter := core.Must(core.New(core.Config{DryRun: true, Rules: []core.Rule{
		{Name: "user", Limits: []core.Limit{core.PerMinute(1)}},
	}}))
	for range 2 {
		d, _ := limiter.Take(context.Background(), 1, core.Hit{Rule: "user", Key: "42"})
		fmt.Println(d.Allowed, d.DryRun)
	}
	// Output:
	// true false
	// true true
}
