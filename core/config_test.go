package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

type nilHooks struct{ core.Hooks }

type deepNilHooks struct{ nilHooks }

// CASES 115, 192; S1-7, S4r-11
func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	rule := core.Rule{Name: "r", Key: static(""), Limits: []core.Limit{core.PerMinute(1)}}
	with := func(f func(*core.Config)) core.Config {
		c := core.Config{Rules: []core.Rule{rule}}
		f(&c)
		return c
	}
	rules := func(rules ...core.Rule) core.Config { return core.Config{Rules: rules} }
	named := func(name string) core.Config { return with(func(c *core.Config) { c.Name = name }) }
	limits := func(l ...core.Limit) core.Config { return rules(core.Rule{Name: "r", Key: static(""), Limits: l}) }
	for _, row := range []struct {
		c    core.Config
		says []string
	}{
		{core.Config{}, []string{"Rules", "0 of them"}},
		{named(`a"b`), []string{"Name", `"a\"b"`}},
		{named("é"), []string{"Name", `"é"`}},
		{named("a\r\nb"), []string{"Name"}},
		{named(strings.Repeat("n", 300)), []string{"Name"}},
		{rules(core.Rule{Name: "r", Limits: rule.Limits}), []string{`Rules[0] ("r").Key`, "nil"}},
		{rules(core.Rule{Name: "r", Key: static("")}), []string{"Limits", "0 of them"}},
		{rules(rule, rule), []string{"Rules[1].Name", `"r"`, "twice"}},
		{rules(rule, core.Rule{Key: static(""), Limits: rule.Limits}), []string{"Rules[1].Name", `""`}},
		{limits(core.PerMinute(1), core.PerMinute(2)), []string{"Limits[1]", "Limits[0]"}},
		{limits(core.Limit{Name: "x", Quota: 1, Window: time.Second}, core.Limit{Name: "x", Quota: 1, Window: time.Minute}), []string{`"x"`, "twice"}},
		{limits(core.Limit{Name: "x\r\n", Quota: 1, Window: time.Second}), []string{"Limits[0]", "Name"}},
		{limits(core.PerMinute(-1)), []string{`("r").Limits[0]`, "Quota", "-1"}},
		{with(func(c *core.Config) { c.Hooks = nilHooks{} }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Hooks = &deepNilHooks{} }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Hooks = (*nilHooks)(nil) }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersOff | core.HeadersDraft03 }), []string{"Headers", "HeadersOff"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersXEpoch | core.HeadersXMillis }), []string{"X-RateLimit-Reset"}},
		{with(func(c *core.Config) { c.Headers = 128 }), []string{"Headers", "0x80"}},
		{core.Config{Name: "a b", Headers: 128, Rules: []core.Rule{{Name: "r"}}}, []string{"Name", "Headers", "Key", "Limits"}},
	} {
		_, err := core.New(row.c)
		if !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: error %v", row.says, err)
			continue
		}
		for _, s := range row.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("error %q does not say %q", err, s)
			}
		}
	}

	var none *core.Memory
	if _, err := core.New(with(func(c *core.Config) { c.Store = none })); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "Store") {
		t.Errorf("a nil *core.Memory as the store: %v", err)
	}
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	c := with(func(c *core.Config) { c.Store = store })
	newLimiter(t, c, nil)
	if _, err := core.New(c); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "default") {
		t.Errorf("two limiters of one name on one store: %v", err)
	}
}

func TestLimitsGetNames(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "ip", Key: core.TakeOnly, Limits: []core.Limit{core.PerSecond(1), core.PerHour(2), {Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog}, {Name: "own", Quota: 4, Window: time.Minute}}},
		{Name: "user", Key: core.TakeOnly, Limits: []core.Limit{core.PerDay(5)}},
	}}, nil)
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "ip"}, core.Hit{Rule: "user"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for s := range d.Limits() {
		names = append(names, s.Rule+"/"+s.Limit.Name)
	}
	if got, want := strings.Join(names, " "), "ip/ip-1s ip/ip-1h ip/ip-1h-sliding_log ip/own user/user"; got != want {
		t.Errorf("names %q, want %q", got, want)
	}
}

func TestMust(t *testing.T) {
	if core.Must(7, nil) != 7 {
		t.Error("the value is another")
	}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, core.ErrConfig) {
			t.Errorf("panicked with %v", err)
		}
	}()
	core.Must(core.New(core.Config{}))
}
