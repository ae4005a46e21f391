package core_test

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

func TestNewNamesEverythingThatIsWrong(t *testing.T) {
	rule := oneRule(core.PerMinute(1)).Rules[0]
	with := func(f func(*core.Config)) core.Config {
		c := oneRule(core.PerMinute(1))
		f(&c)
		return c
	}
	rules := func(rules ...core.Rule) core.Config { return core.Config{Rules: rules} }
	named := func(name string) core.Config { return with(func(c *core.Config) { c.Name = name }) }
	store := core.Must(core.NewMemory(core.MemoryConfig{}))
	newLimiter(t, with(func(c *core.Config) { c.Store = store }), nil)
	for _, row := range []struct {
		c    core.Config
		says []string
	}{
		{core.Config{}, []string{"Rules: 0 of them: must be 1 to 10000, such as {Name:"}},
		{named(`a"b`), []string{`Name: "a\"b": must be 1 to 64 of the characters A-Z a-z 0-9 _ . -`}},
		{named("é"), []string{"Name", `"é"`}},
		{named("a\r\nb"), []string{"Name"}},
		{named(strings.Repeat("n", 65)), []string{"Name"}},
		{rules(core.Rule{Name: "r", Key: static("")}), []string{`Rules[0] ("r").Limits: 0 of them: must be 1 to 16`}},
		{rules(rule, rule), []string{`Rules[1].Name: "r": two rules have this name`}},
		{rules(rule, core.Rule{Key: static(""), Limits: rule.Limits}), []string{`Rules[1].Name: "": must be 1 to 64 of the characters`}},
		{rules(core.Rule{Name: "a b", Limits: rule.Limits}), []string{`Rules[0] ("a b").Name: "a b": must be 1 to 64`}},
		{oneRule(core.PerMinute(1), core.PerMinute(2)), []string{`Rules[0] ("r").Limits[1]: 2 per 1m: counts the same as Limits[0], 1 per 1m: only their quotas differ`}},
		{oneRule(core.Limit{Name: "x", Quota: 1, Window: time.Second}, core.Limit{Name: "x", Quota: 1, Window: time.Minute}), []string{`Rules[0].Limits: "x": two limits have this name (the other one is of rule "r")`}},
		{oneRule(core.Limit{Name: "x\r\n", Quota: 1, Window: time.Second}), []string{"Limits[0]", "Name"}},
		{oneRule(core.PerMinute(-1)), []string{`("r").Limits[0]`, "Quota", "-1"}},
		{with(func(c *core.Config) { c.Hooks = (*core.DefaultHooks)(nil) }), []string{"Hooks", "nil"}},
		{with(func(c *core.Config) { c.Observer = (*watcher)(nil) }), []string{"Observer", "*core_test.watcher: is nil"}},
		{with(func(c *core.Config) { c.Store = (*core.Memory)(nil) }), []string{"Store", "*core.Memory: is nil"}},
		{with(func(c *core.Config) { c.Store = mapStore(nil) }), []string{"Store", "core_test.mapStore: is nil"}},
		{with(func(c *core.Config) { c.Store = store }), []string{"Name", `"default"`}}, // another limiter of the store has it
		{core.Config{Store: shared{store}}, []string{`Name: ""`, "Rules: 0"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersOff | core.HeadersDraft03 }), []string{"Headers", "HeadersOff"}},
		{with(func(c *core.Config) { c.Headers = core.HeadersXEpoch | core.HeadersXMillis }), []string{"X-RateLimit-Reset"}},
		{with(func(c *core.Config) { c.Headers = 128 }), []string{"Headers", "0x80"}},
		{with(func(c *core.Config) { c.MaxWait = -1 }), []string{"MaxWait: -1ns: must be from 0 to 366 days"}},
		{with(func(c *core.Config) { c.MaxWait = 2 }), []string{"MaxWait: 2ns", "2*time.Second"}},
		{with(func(c *core.Config) { c.Rules[0].MaxWait = core.MaxWindow + 1 }), []string{`Rules[0] ("r").MaxWait`, "366 days"}},
		{with(func(c *core.Config) { c.MaxWaiters = -1 }), []string{"MaxWaiters: -1: must be from 1 to 100000, or 0 for 100"}},
		{with(func(c *core.Config) { c.MaxWaiters = 100_001 }), []string{"MaxWaiters: 100001"}},
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
	for _, wait := range []time.Duration{core.MinWindow, core.MaxWindow} {
		for _, waiters := range []int{1, 100_000} {
			if _, err := core.New(with(func(c *core.Config) { c.MaxWait, c.Rules[0].MaxWait, c.MaxWaiters = wait, wait, waiters })); err != nil {
				t.Errorf("MaxWait %v, MaxWaiters %d: %v", wait, waiters, err)
			}
		}
	}
}

type mapStore map[string]int

func (mapStore) Open(string, []core.StoreRule) (core.Counters, error) { return nil, errors.New("mine") }
func (mapStore) Guarantees() core.Guarantees                          { return core.Guarantees{} }

// shared is a Memory that says that other processes count in it.
type shared struct{ *core.Memory }

func (shared) Guarantees() core.Guarantees { return core.Guarantees{Ops: core.AllOps, Shared: true} }

// A limiter of a shared store needs a name once: a Reconfigure may leave it out.
func TestASharedStoreNeedsANameOnce(t *testing.T) {
	c := oneRule(core.PerMinute(1))
	c.Name, c.Store = "named", shared{core.Must(core.NewMemory(core.MemoryConfig{}))}
	l := newLimiter(t, c, nil)
	c.Name = ""
	if err := l.Reconfigure(c); err != nil || !l.Guarantees().Shared {
		t.Error(err)
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
	fields := regexp.MustCompile(`^floodgate: configuration: (Name|Headers|Rules\[0\] \("ip"\)\.Limits\[1\]\.[A-Z][A-Za-z.]*|Rules\[1\]\.(Name|Limits\[0\]\.Quota)): \S`)
	all := strings.Split(fmt.Sprint(err), "\n")
	for _, line := range all {
		if !fields.MatchString(line) {
			t.Errorf("%s", line)
		}
	}
	if want := 2 + strings.Count(wrong.Validate().Error(), "\n") + 1 + 2; len(all) != want {
		t.Errorf("%d lines, want %d:\n%v", len(all), want, err)
	}
	_, err = core.ParseLimits("1/m, -1/s fixed_window burst=5 precision=1s")
	for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
		if !strings.HasPrefix(line, `limits text "1/m, -1/s fixed_window burst=5 precision=1s", item 2: floodgate: configuration: `) {
			t.Errorf("a line of the text's error: %s", line)
		}
	}
}

func TestTheMostRulesAndLimits(t *testing.T) {
	limits := func(n int) []core.Rule {
		var all []core.Limit
		for i := range n {
			all = append(all, core.Limit{Quota: 5, Window: time.Duration(i+1) * time.Hour})
		}
		return oneRule(all...).Rules
	}
	for _, row := range []struct {
		rules []core.Rule
		wrong string
	}{
		{numbered(core.MaxRules), ""}, {numbered(core.MaxRules + 1), "Rules: 10001 of them: must be 1 to 10000"},
		{limits(core.MaxLimits), ""}, {limits(core.MaxLimits + 1), "Limits: 17 of them: must be 1 to 16"},
	} {
		_, err := core.New(core.Config{Rules: row.rules})
		if (err == nil) != (row.wrong == "") || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%d rules, the first of %d limits: %v, want %q", len(row.rules), len(row.rules[0].Limits), err, row.wrong)
		}
	}
}

// Limits without a name get one that says which they are.
func TestTheNamesOfLimits(t *testing.T) {
	hour, log := core.PerHour(5), core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}
	for names, limits := range map[string][]core.Limit{
		"r":                         {hour},
		"r-1h r-1d":                 {hour, core.PerDay(9)},
		"r-1h r-1h-sliding_log":     {hour, log},
		"r-1h r-1h-sliding_window":  {hour, {Quota: 5, Window: time.Hour, Aligned: true}},
		"r-1h r-1h-bucketed_window": {every[2], {Quota: 5, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Second}},
		"r-1h r-1h-fixed_window r-1h-fixed_window-3": {hour, {Name: "r-1h-fixed_window", Quota: 6, Window: time.Minute}, fixed(7, time.Hour)},
		"r-1h own r-day": {hour, {Name: "own", Quota: 6, Window: time.Minute}, core.PerDay(9).In(time.UTC)},
	} {
		var got []string
		for s := range newLimiter(t, oneRule(limits...), newClock()).Check(&request{}).Limits() {
			got = append(got, s.Limit.Name)
		}
		if strings.Join(got, " ") != names {
			t.Errorf("%v, want %s", got, names)
		}
	}
}

func TestReconfigure(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMinute(5)), newClock())
	l.Check(&request{})
	if err := l.Reconfigure(oneRule(core.PerMinute(10), core.PerHour(3))); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for s := range l.Check(&request{}).Limits() {
		got = append(got, s.Remaining)
	}
	if !slices.Equal(got, []int64{8, 2}) {
		t.Errorf("left %v, want 8 of the limit that stayed and 2 of the new one", got)
	}
	other, store := oneRule(core.PerMinute(1)), oneRule(core.PerMinute(1))
	other.Name = "other"
	store.Store = core.Must(core.NewMemory(core.MemoryConfig{}))
	for name, c := range map[string]core.Config{"another name": other, "another store": store, "no rules": {}} {
		if err := l.Reconfigure(c); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if d := l.Check(&request{}); !d.Allowed || d.Remaining != 1 {
		t.Errorf("after changes that were errors: %v", d)
	}
}

// A rule that is removed takes its blocks with it: another rule that has the same keys is not blocked, nor is
// the rule itself if it comes back.
func TestReconfigureEndsTheBlocksOfARuleThatItRemoves(t *testing.T) {
	for _, next := range []string{"r1", "new"} {
		l := newLimiter(t, core.Config{Rules: numbered(2)}, newClock())
		if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "r0", Key: "k"}, core.Hit{Rule: "r1", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		with := numbered(2)
		with[1].Name = next
		for _, rules := range [][]core.Rule{numbered(1), with} {
			if err := l.Reconfigure(core.Config{Rules: rules}); err != nil {
				t.Fatal(err)
			}
		}
		if !takeOf(t, l, next, "k") || takeOf(t, l, "r0", "k") {
			t.Errorf("a key of rule %q is blocked, or one of the rule that stays is not", next)
		}
	}
}

// Exactly as many are allowed as the highest quota allows, while the limits change all the time.
func TestReconfigureUnderLoad(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerHour(500)), newClock())
	var allowed atomic.Int64
	done := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-done:
				return
			default:
			}
			limits := []core.Limit{core.PerHour(500)}
			if i%2 == 0 {
				limits = append(limits, core.Limit{Quota: 1000 + i, Window: 24 * time.Hour}, core.Limit{Quota: 1000, Window: time.Hour, Algorithm: core.SlidingLog})
			}
			if err := l.Reconfigure(oneRule(limits...)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range 50 {
				if l.Check(&request{}).Allowed {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	close(done)
	changes.Wait()
	if got := allowed.Load(); got != 500 {
		t.Errorf("%d allowed, want 500", got)
	}
}

// If two Reconfigures overlapped, the limiter could end with the rules of the
// one and a store that has been prepared for those of the other.
func TestReconfiguresDoNotOverlap(t *testing.T) {
	var inside, overlaps atomic.Int32
	c := oneRule(core.PerHour(5))
	s := aroundMemory(nil)
	s.reopen = func(c core.Counters, _ []core.StoreRule) (core.Counters, error) {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		for range 10 {
			runtime.Gosched()
		}
		inside.Add(-1)
		return c, nil
	}
	c.Store = s
	l := newLimiter(t, c, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if err := l.Reconfigure(oneRule(core.PerHour(5))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("%d times a Reconfigure began before another one had ended", n)
	}
}

func ExampleLimiter_Reconfigure() {
	limiter := core.Must(core.New(oneRule(core.PerMinute(5))))
	limiter.Check(&request{})
	// The quota changes, the count stays.
	_ = limiter.Reconfigure(oneRule(core.PerMinute(100)))
	fmt.Println(limiter.Check(&request{}).Remaining)
	// Output: 98
}
