package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// told notes in which order the limiter asks.
func told(calls *[]string, name string, f core.KeyFunc) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		*calls = append(*calls, name)
		return f(dst, r)
	}
}

// CASES 67, 189
func TestTheOrderOfQuestions(t *testing.T) {
	var calls []string
	hooks := core.HookFuncs{
		ShouldLimit: func(core.Request) bool { calls = append(calls, "should"); return true },
		KeyExtra:    func(core.Request) (string, error) { calls = append(calls, "extra"); return "", nil },
		Cost:        func(core.Request) (int64, error) { calls = append(calls, "cost"); return 1, nil },
	}.Hooks()
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "l", Store: s, Hooks: hooks, Rules: []core.Rule{
		{Name: "body", Key: told(&calls, "body", bodyKey), Limits: []core.Limit{core.PerMinute(100)}},
		{Name: "ip", Key: told(&calls, "ip", static("ip")), Limits: []core.Limit{core.PerMinute(1)}},
	}}, nil)

	r := &request{body: "alice"}
	if d := l.Check(r); !d.Allowed || r.reads != 1 || s.takes != 2 {
		t.Errorf("%v, body read %d times, %d operations", d, r.reads, s.takes)
	}
	if got, want := strings.Join(calls, " "), "should extra cost body ip body"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}

	s.takes = 0
	r = &request{body: "alice"}
	if d := l.Check(r); d.Allowed || d.Rule != "ip" || r.reads != 0 || s.takes != 1 {
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
		if d := l.Check(&request{}); !d.Allowed || d.Rule != "ip" {
			t.Error(d)
		}
		only := newLimiter(t, core.Config{Rules: []core.Rule{{Key: fails(core.SkipRule), Limits: []core.Limit{core.PerMinute(0)}}}}, nil)
		if d := only.Check(&request{}); !d.Allowed || d.Reason != core.NoRule || len(d.AppendHeaders(nil)) != 0 {
			t.Error(d)
		}
	})
	t.Run("ErrBadRequest charges the others", func(t *testing.T) { // CASES 64, 65
		l := with(fails(fmt.Errorf("twice: %w", core.ErrBadRequest)))
		for i, want := range []core.Reason{core.BadRequest, core.BadRequest, core.OverLimit} {
			d := l.Check(&request{})
			if d.Allowed || d.Reason != want {
				t.Errorf("request %d: %v", i+1, d)
			}
			if den := l.Deny(&request{}, d); den.Status != map[core.Reason]int{core.BadRequest: 400, core.OverLimit: 429}[want] {
				t.Errorf("request %d: status %d", i+1, den.Status)
			}
		}
	})
	t.Run("any other", func(t *testing.T) { // CASES 174
		l := with(fails(errFault))
		d := l.Check(&request{})
		if d.Allowed || d.Reason != core.Failed || !errors.Is(d.Err, errFault) || left(t, l, "ip", "ip") != 2 {
			t.Errorf("%v, %d left", d, left(t, l, "ip", "ip"))
		}
		if den := l.Deny(&request{}, d); den.Status != 503 || strings.Contains(string(den.Body), "10.1.2.3") {
			t.Errorf("%d %s", den.Status, den.Body)
		}
	})
	t.Run("a body that cannot be read", func(t *testing.T) {
		l := with(bodyKey)
		if d := l.Check(&request{bodyErr: errFault}); d.Reason != core.Failed {
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

func TestHooks(t *testing.T) {
	rule := core.Rule{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}}
	with := func(f core.HookFuncs, rules ...core.Rule) *core.Limiter {
		return newLimiter(t, core.Config{Hooks: f.Hooks(), Rules: append(rules, rule)}, newClock())
	}
	t.Run("preflights", func(t *testing.T) { // CASES 48
		l := newLimiter(t, core.Config{Rules: []core.Rule{rule}}, newClock())
		preflight := &request{method: "OPTIONS", header: map[string][]string{"Access-Control-Request-Method": {"POST"}}}
		if d := l.Check(preflight); !d.Allowed || d.Reason != core.Skipped || left(t, l, "r", "k") != 10 {
			t.Error(d)
		}
		if d := l.Check(&request{method: "OPTIONS"}); d.Reason != core.WithinLimits {
			t.Error(d)
		}
	})
	t.Run("cost", func(t *testing.T) {
		cost := int64(4)
		l := with(core.HookFuncs{Cost: func(core.Request) (int64, error) { return cost, nil }})
		for i, allowed := range []bool{true, true, false} {
			if d := l.Check(&request{}); d.Allowed != allowed || d.Cost != 4 {
				t.Errorf("request %d: %v", i+1, d)
			}
		}
		cost = 0
		if d := l.Check(&request{}); !d.Allowed || d.Remaining != 2 {
			t.Error(d)
		}
		cost = -1
		if d := l.Check(&request{}); d.Reason != core.Failed || !errors.Is(d.Err, core.ErrNegativeCost) {
			t.Error(d)
		}
	})
	t.Run("cost that reads the body", func(t *testing.T) {
		l := with(core.HookFuncs{Cost: func(r core.Request) (int64, error) {
			b, err := r.Body(100)
			return int64(len(b)), err
		}}, core.Rule{Name: "body", Key: bodyKey, Limits: []core.Limit{core.PerMinute(100)}})
		if d := l.Check(&request{body: "seven77"}); !d.Allowed || d.Cost != 7 || left(t, l, "r", "k") != 3 || left(t, l, "body", "seven77") != 93 {
			t.Error(d)
		}
	})
	t.Run("cost that makes something up without the body", func(t *testing.T) {
		for _, made := range []int64{0, 100} {
			l := with(core.HookFuncs{Cost: func(r core.Request) (int64, error) {
				if b, err := r.Body(100); err == nil {
					return int64(len(b)), nil
				}
				return made, nil
			}})
			r := &request{body: "1234567890"}
			if d := l.Check(r); !d.Allowed || d.Cost != 10 {
				t.Errorf("made up %d: %v", made, d)
			}
			r = &request{body: "1234567890"}
			if d := l.Check(r); d.Allowed || r.reads != 0 {
				t.Errorf("made up %d: %v, the body was read %d times", made, d, r.reads)
			}
		}
	})
	t.Run("extra", func(t *testing.T) {
		extra, err := "", error(nil)
		l := with(core.HookFuncs{KeyExtra: func(core.Request) (string, error) { return extra, err }})
		want := func(remaining int64) {
			t.Helper()
			if d := l.Check(&request{}); d.Remaining != remaining {
				t.Errorf("extra %q: %v", extra, d)
			}
		}
		want(9)
		extra = "a"
		want(9)
		want(8)
		extra = ""
		want(8)
		err = core.SkipRule
		if d := l.Check(&request{}); d.Reason != core.Failed {
			t.Error(d)
		}
	})
	t.Run("extra that reads the body", func(t *testing.T) {
		l := with(core.HookFuncs{KeyExtra: func(r core.Request) (string, error) {
			b, err := r.Body(100)
			return string(b), err
		}})
		l.Check(&request{body: "a"})
		if d := l.Check(&request{body: "a"}); d.Remaining != 8 {
			t.Error(d)
		}
		if d := l.Check(&request{body: "b"}); d.Remaining != 9 {
			t.Error(d)
		}
	})
	t.Run("panics leave nothing behind", func(t *testing.T) {
		for name, f := range map[string]core.HookFuncs{
			"ShouldLimit": {ShouldLimit: func(core.Request) bool { panic("hook") }},
			"KeyExtra":    {KeyExtra: func(core.Request) (string, error) { panic("hook") }},
			"Cost":        {Cost: func(core.Request) (int64, error) { panic("hook") }},
		} {
			l := with(f)
			func() {
				defer func() {
					if got := recover(); got != "hook" {
						t.Errorf("%s: recovered %v", name, got)
					}
				}()
				l.Check(&request{})
			}()
			if got := left(t, l, "r", "k"); got != 10 {
				t.Errorf("%s: %d left, want 10", name, got)
			}
		}
	})
	t.Run("a hook asks the limiter itself", func(t *testing.T) { // CASES 193
		var l *core.Limiter
		again := func(r core.Request) { _, _ = l.Take(r.Context(), 1, core.Hit{Rule: "r", Key: "k"}) }
		l = with(core.HookFuncs{
			KeyExtra:     func(r core.Request) (string, error) { again(r); return "", nil },
			OnDisallowed: func(r core.Request, d core.Decision) core.Denial { again(r); return core.DefaultDenial(r, d) },
		})
		for range 10 {
			if d := l.Check(&request{}); !d.Allowed {
				l.Deny(&request{}, d)
			}
		}
	})
}

func TestRehearsal(t *testing.T) { // CASES 176
	var heard []core.Decision
	l := newLimiter(t, core.Config{
		Rehearsal: true,
		Hooks: core.HookFuncs{OnDisallowed: func(_ core.Request, d core.Decision) core.Denial {
			heard = append(heard, d)
			return core.Denial{}
		}}.Hooks(),
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}},
	}, newClock())
	for i, rehearsed := range []bool{false, true, true} {
		if d := l.Check(&request{}); !d.Allowed || d.Rehearsal != rehearsed {
			t.Errorf("request %d: %v", i+1, d)
		}
	}
	if len(heard) != 2 || heard[0].Allowed || !heard[0].Rehearsal || !strings.Contains(heard[0].String(), "rehearses refusing") {
		t.Errorf("the hook heard %v", heard)
	}
	counted := newLimiter(t, core.Config{Rehearsal: true, Rules: []core.Rule{
		{Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(o core.Outcome) bool { return o.Status == 401 }},
		{Name: "bad", Key: fails(core.ErrBadRequest), Limits: []core.Limit{core.PerMinute(1)}},
	}}, newClock())
	counted.Settle(&request{}, counted.Check(&request{}), core.Outcome{Status: 401})
	if got := left(t, counted, "failures", "k"); got != 4 {
		t.Errorf("a bad request that is let through counts by what becomes of it: %d left, want 4", got)
	}
	for name, key := range map[string]core.KeyFunc{"a fault": fails(errFault), "a bad request": fails(core.ErrBadRequest)} {
		l := newLimiter(t, core.Config{Rehearsal: true, Rules: []core.Rule{{Key: key, Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
		if d := l.Check(&request{}); !d.Allowed || !d.Rehearsal || d.Err == nil {
			t.Errorf("%s refuses in a rehearsal: %v", name, d)
		}
	}
	if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); err != nil || !d.Allowed || !d.Rehearsal {
		t.Errorf("%v, %v", d, err)
	}
	if got := l.Stats(); got.Rehearsed != 3 || got.Allowed != 1 || got.Denied != 0 {
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
			Counts: func(o core.Outcome) bool { return o.Status >= 400 && o.Status < 500 },
			Clears: func(o core.Outcome) bool { return o.Status < 400 },
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
	if err := l.Refund(t.Context(), d); err != nil {
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

// CASES 31: a key and what a hook adds to it are never taken for another pair.
func FuzzKeyExtra(f *testing.F) {
	f.Add([]byte("a"), "b-c", []byte("a-b"), "c")
	f.Add([]byte("ab"), "", []byte("a"), "b")
	f.Add([]byte("a"), "b", []byte("ab\x00\x00\x00\x01\x01"), "")
	f.Fuzz(func(t *testing.T, a []byte, x string, b []byte, y string) {
		stored := func(key []byte, extra string) string {
			l := core.Must(core.New(core.Config{
				Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1})),
				Hooks: core.HookFuncs{KeyExtra: func(core.Request) (string, error) { return extra, nil }}.Hooks(),
				Rules: []core.Rule{{Name: "r", Key: static(string(key)), Limits: []core.Limit{core.PerMinute(1)}}},
			}))
			return l.Check(&request{}).StoredKey()
		}
		if same := bytes.Equal(a, b) && x == y; same != (stored(a, x) == stored(b, y)) {
			t.Errorf("(%q, %q) and (%q, %q)", a, x, b, y)
		}
	})
}

// auditHooks refuses as the embedded hooks do, and notes what it refused.
type auditHooks struct {
	core.DefaultHooks
	lines *[]string
}

func (h auditHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	*h.lines = append(*h.lines, d.Limit.Name)
	return h.DefaultHooks.OnDisallowed(r, d)
}

// politeHooks wraps other hooks.
type politeHooks struct{ core.Hooks }

func (h politeHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	den := h.Hooks.OnDisallowed(r, d)
	den.Body = []byte("please wait")
	return den
}

func TestHooksCompose(t *testing.T) {
	var lines []string
	l := newLimiter(t, core.Config{
		Hooks: politeHooks{auditHooks{lines: &lines}},
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(0)}}},
	}, nil)
	den := l.Deny(&request{}, l.Check(&request{}))
	if den.Status != 429 || string(den.Body) != "please wait" || !slices.Equal(lines, []string{"r"}) {
		t.Errorf("%+v, %q", den, lines)
	}
}

// A hook may use one slice of header lines for all denials.
func TestADenialDoesNotChangeTheHeaderOfAHook(t *testing.T) {
	shared := []core.Header{{Name: "Content-Type", Value: "application/problem+json"}, {Name: "X-Denied", Value: "yes"}}
	bodies := []string{"please wait", "", `{"type":"about:blank"}`}
	l := newLimiter(t, core.Config{
		Hooks: core.HookFuncs{OnDisallowed: func(core.Request, core.Decision) core.Denial {
			body := bodies[0]
			bodies = bodies[1:]
			return core.Denial{Status: 429, Header: shared, Body: []byte(body)}
		}}.Hooks(),
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(0)}}},
	}, nil)
	for i, want := range []string{
		"[{Content-Type text/plain; charset=utf-8} {X-Denied yes}]",
		"[{X-Denied yes}]",
		"[{Content-Type application/problem+json} {X-Denied yes}]",
	} {
		if den := l.Deny(&request{}, l.Check(&request{})); fmt.Sprint(den.Header) != want {
			t.Errorf("denial %d: header %v, want %s", i+1, den.Header, want)
		}
	}
}

func ExampleHooks() {
	var lines []string
	limiter := core.Must(core.New(core.Config{
		Hooks: auditHooks{lines: &lines}, // embeds core.DefaultHooks, and replaces OnDisallowed
		Rules: []core.Rule{{Name: "ip", Key: static("192.0.2.1"), Limits: []core.Limit{core.PerMinute(1)}}},
	}))
	for range 2 {
		if d := limiter.Check(&request{}); !d.Allowed {
			fmt.Println(limiter.Deny(&request{}, d).Status, lines)
		}
	}
	// Output: 429 [ip]
}

func ExampleHookFuncs() {
	limiter := core.Must(core.New(core.Config{
		Hooks: core.HookFuncs{ShouldLimit: func(r core.Request) bool { return r.Method() != "GET" }}.Hooks(),
		Rules: []core.Rule{{Name: "all", Key: static(""), Limits: []core.Limit{core.PerMinute(0)}}},
	}))
	fmt.Println(limiter.Check(&request{method: "GET"}).Allowed, limiter.Check(&request{method: "POST"}).Allowed)
	// Output: true false
}
