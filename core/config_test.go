package core_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

type nilHooks struct{ core.Hooks }

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
		{core.Config{}, []string{"Rules", "0 of them", "such as {Name:"}},
		{named(`a"b`), []string{"Name", `"a\"b"`}},
		{named("é"), []string{"Name", `"é"`}},
		{named("a\r\nb"), []string{"Name"}},
		{named(strings.Repeat("n", 300)), []string{"Name"}},
		{rules(core.Rule{Name: "r", Key: static("")}), []string{"Limits", "0 of them"}},
		{rules(rule, rule), []string{"Rules[1].Name", `"r"`, "two rules"}},
		{rules(rule, core.Rule{Key: static(""), Limits: rule.Limits}), []string{"Rules[1].Name", `""`}},
		{limits(core.PerMinute(1), core.PerMinute(2)), []string{"Limits[1]", "Limits[0]"}},
		{limits(core.Limit{Name: "x", Quota: 1, Window: time.Second}, core.Limit{Name: "x", Quota: 1, Window: time.Minute}), []string{`"x"`, "two limits"}},
		{limits(core.Limit{Name: "x\r\n", Quota: 1, Window: time.Second}), []string{"Limits[0]", "Name"}},
		{limits(core.PerMinute(-1)), []string{`("r").Limits[0]`, "Quota", "-1"}},
		{with(func(c *core.Config) { c.Hooks = nilHooks{} }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Hooks = &nilHooks{} }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Hooks = (*nilHooks)(nil) }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersOff | core.HeadersDraft03 }), []string{"Headers", "HeadersOff"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersXEpoch | core.HeadersXMillis }), []string{"X-RateLimit-Reset"}},
		{with(func(c *core.Config) { c.Headers = 128 }), []string{"Headers", "0x80"}},
		{core.Config{Name: "a b", Headers: 128, Rules: []core.Rule{{Name: "r"}}}, []string{"Name", "Headers", "Limits"}},
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
		{Name: "ip", Limits: []core.Limit{core.PerSecond(1), core.PerHour(2), {Quota: 3, Window: time.Hour, Algorithm: core.SlidingLog}, {Name: "own", Quota: 4, Window: time.Minute}}},
		{Name: "user", Limits: []core.Limit{{Quota: 5, Window: 24 * time.Hour}}},
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

func TestEveryLineOfAnErrorNamesItsField(t *testing.T) {
	wrong := core.Limit{Name: "a b", Quota: -1, Window: -time.Second, Burst: 3, Aligned: true, Algorithm: core.SlidingLog, Lockout: core.Lockout{First: -1, Factor: -1}}
	_, err := core.New(core.Config{Name: "a b", Headers: 128, Rules: []core.Rule{
		{Name: "ip", Key: static(""), Limits: []core.Limit{core.PerMinute(1), wrong}},
		{Key: static(""), Limits: []core.Limit{core.PerMinute(-1)}},
	}})
	if err == nil {
		t.Fatal("no error")
	}
	fields := regexp.MustCompile(`^floodgate: configuration: (Name|Headers|Rules\[0\] \("ip"\)\.Limits\[1\]\.[A-Z][A-Za-z.]*|Rules\[1\]\.(Name|Limits\[0\]\.Quota)): \S`)
	lines := strings.Split(err.Error(), "\n")
	for _, line := range lines {
		if !fields.MatchString(line) {
			t.Errorf("%s", line)
		}
	}
	if want := 2 + strings.Count(wrong.Validate().Error(), "\n") + 1 + 2; len(lines) != want {
		t.Errorf("%d lines, want %d:\n%v", len(lines), want, err)
	}
	_, err = core.ParseLimits("1/m, -1/s fixed_window burst=5 precision=1s")
	for i, line := range strings.Split(fmt.Sprint(err), "\n") {
		if !strings.HasPrefix(line, `limits text "1/m, -1/s fixed_window burst=5 precision=1s", item 2: floodgate: configuration: `) {
			t.Errorf("line %d of the text's error: %s", i+1, line)
		}
	}
	for _, line := range strings.Split(wrong.Validate().Error(), "\n") {
		if !strings.HasPrefix(line, "floodgate: configuration: ") {
			t.Errorf("Validate: %s", line)
		}
	}
}
