package core_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func TestHooks(t *testing.T) {
	rule := core.Rule{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(10)}}
	with := func(f hooktest.Funcs, rules ...core.Rule) *core.Limiter {
		return newLimiter(t, core.Config{Hooks: f, Rules: append(rules, rule)}, newClock())
	}
	t.Run("preflights", func(t *testing.T) {
		l := newLimiter(t, core.Config{Rules: []core.Rule{rule}}, newClock())
		preflight := &request{method: "OPTIONS", header: map[string][]string{"Access-Control-Request-Method": {"POST"}}}
		if d := l.Check(preflight); !d.Allowed || d.Reason != core.ReasonSkipped || left(t, l, "r", "k") != 10 {
			t.Error(d)
		}
		for _, r := range []*request{{method: "OPTIONS"}, {method: "POST", header: preflight.header}} {
			if d := l.Check(r); d.Reason != core.ReasonWithinLimits {
				t.Errorf("%s: %v", r.method, d)
			}
		}
	})
	t.Run("cost", func(t *testing.T) {
		cost := int64(4)
		l := with(hooktest.Funcs{CostFunc: func(core.Request) (int64, error) { return cost, nil }})
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
		if d := l.Check(&request{}); d.Reason != core.ReasonFailed || !errors.Is(d.Err, core.ErrConfig) {
			t.Error(d)
		}
	})
	t.Run("cost that reads the body", func(t *testing.T) {
		l := with(hooktest.Funcs{CostFunc: func(r core.Request) (int64, error) {
			b, err := r.Body(100)
			return int64(len(b)), err
		}}, core.Rule{Name: "body", Key: bodyKey, Limits: []core.Limit{core.PerMinute(100)}})
		if d := l.Check(&request{body: "seven77"}); !d.Allowed || d.Cost != 7 || left(t, l, "r", "k") != 3 || left(t, l, "body", "seven77") != 93 {
			t.Error(d)
		}
	})
	t.Run("cost that makes something up without the body", func(t *testing.T) {
		for _, made := range []int64{0, 100} {
			l := with(hooktest.Funcs{CostFunc: func(r core.Request) (int64, error) {
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
		l := with(hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return extra, err }})
		want := func(remaining int64) {
			t.Helper()
			if d := l.Check(&request{}); d.Remaining != remaining || d.Allowed != (err == nil) {
				t.Errorf("extra %q: %v", extra, d)
			}
		}
		want(9)
		extra = "a"
		want(9)
		want(8)
		err = core.ErrBadRequest
		want(8) // of the key without a text
		extra, err = "", nil
		want(7)
		err = core.SkipRule
		if d := l.Check(&request{}); d.Reason != core.ReasonFailed {
			t.Error(d)
		}
	})
	t.Run("extra that reads the body", func(t *testing.T) {
		l := with(hooktest.Funcs{KeyExtraFunc: func(r core.Request) (string, error) {
			b, err := r.Body(100)
			return string(b), err
		}})
		_, _ = l.Take(t.Context(), 10, core.Hit{Rule: "r", Key: "k"}) // without an extra
		l.Check(&request{body: "a"})
		if d := l.Check(&request{body: "a"}); d.Remaining != 8 {
			t.Error(d)
		}
		if d := l.Check(&request{body: "b"}); d.Remaining != 9 {
			t.Error(d)
		}
	})
	t.Run("panics leave nothing behind", func(t *testing.T) {
		for name, f := range map[string]hooktest.Funcs{
			"ShouldLimit": {ShouldLimitFunc: func(core.Request) bool { panic("hook") }},
			"KeyExtra":    {KeyExtraFunc: func(core.Request) (string, error) { panic("hook") }},
			"Cost":        {CostFunc: func(core.Request) (int64, error) { panic("hook") }},
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
	t.Run("a hook asks the limiter itself", func(t *testing.T) {
		var l *core.Limiter
		again := func(r core.Request) { _, _ = l.Take(r.Context(), 1, core.Hit{Rule: "r", Key: "k"}) }
		l = with(hooktest.Funcs{
			KeyExtraFunc: func(r core.Request) (string, error) { again(r); return "", nil },
			OnDisallowedFunc: func(r core.Request, d core.Decision) core.Denial {
				again(r)
				return core.DefaultHooks{}.OnDisallowed(r, d)
			},
		})
		for range 10 {
			if d := l.Check(&request{}); !d.Allowed {
				l.Deny(&request{}, d)
			}
		}
	})
}

func TestAFailedDecisionHasItsCost(t *testing.T) {
	l := newLimiter(t, core.Config{
		Log: (&lines{}).logger(), Rules: []core.Rule{{Name: "r", Key: fails(errFault), Limits: []core.Limit{core.PerMinute(10)}}},
		Hooks: hooktest.Funcs{CostFunc: func(core.Request) (int64, error) { return 7, nil }},
	}, newClock())
	if d := l.Check(&request{}); d.Reason != core.ReasonFailed || d.Cost != 7 {
		t.Errorf("%v, cost %d: want 7", d, d.Cost)
	}
}

// A key and what a hook adds to it are never taken for another pair.
func FuzzKeyExtra(f *testing.F) {
	f.Add([]byte("a"), "b-c", []byte("a-b"), "c")
	f.Add([]byte("ab"), "", []byte("a"), "b")
	f.Add([]byte("a"), "b", []byte("ab\x00\x00\x00\x01\x01"), "")
	f.Fuzz(func(t *testing.T, a []byte, x string, b []byte, y string) {
		stored := func(key []byte, extra string) string {
			l := core.Must(core.New(core.Config{
				Store: core.Must(core.NewMemory(core.MemoryConfig{MaxKeys: 1})),
				Hooks: hooktest.Funcs{KeyExtraFunc: func(core.Request) (string, error) { return extra, nil }},
				Rules: []core.Rule{{Name: "r", Key: static(string(key)), Limits: []core.Limit{core.PerMinute(1)}}},
			}))
			return l.Check(&request{}).StoredKey()
		}
		if same := bytes.Equal(a, b) && x == y; same != (stored(a, x) == stored(b, y)) {
			t.Errorf("(%q, %q) and (%q, %q)", a, x, b, y)
		}
	})
}

// auditHooks denies as the embedded hooks do, and records what it denied.
type auditHooks struct {
	core.DefaultHooks
	lines *[]string
}

func (h auditHooks) OnDisallowed(r core.Request, d core.Decision) core.Denial {
	*h.lines = append(*h.lines, d.Limit().Name)
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
	var denied []string
	config := oneRule(core.PerMinute(0))
	config.Hooks = politeHooks{auditHooks{lines: &denied}}
	l := newLimiter(t, config, nil)
	den := l.Deny(&request{}, l.Check(&request{}))
	if den.Status != 429 || string(den.Body) != "please wait" || !slices.Equal(denied, []string{"r"}) {
		t.Errorf("%+v, %q", den, denied)
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
