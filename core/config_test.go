package core_test

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
		{with(func(c *core.Config) { c.Hooks = (*core.DefaultHooks)(nil) }), []string{"Hooks", "nil"}},
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

func TestTheMostRulesAndLimits(t *testing.T) {
	rules := func(n int) (all []core.Rule) {
		for i := range n {
			all = append(all, core.Rule{Name: fmt.Sprint("r", i), Key: static("k"), Limits: []core.Limit{core.PerHour(5)}})
		}
		return all
	}
	limits := func(n int) (all []core.Rule) {
		r := core.Rule{Name: "r", Key: static("k")}
		for i := range n {
			r.Limits = append(r.Limits, core.Limit{Quota: 5, Window: time.Duration(i+1) * time.Hour})
		}
		return []core.Rule{r}
	}
	for _, row := range []struct {
		rules []core.Rule
		wrong string
	}{
		{rules(core.MaxRules), ""}, {rules(core.MaxRules + 1), "Rules"}, {rules(0), "Rules"},
		{limits(core.MaxLimits), ""}, {limits(core.MaxLimits + 1), "Limits"}, {limits(0), "Limits"},
	} {
		_, err := core.New(core.Config{Rules: row.rules})
		if (err == nil) != (row.wrong == "") || err != nil && (!errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), row.wrong)) {
			t.Errorf("%d rules, the first of %d limits: %v, want %q", len(row.rules), len(append(row.rules, core.Rule{})[0].Limits), err, row.wrong)
		}
	}
}

// Limits without a name get one that says which they are.
func TestTheNamesOfLimits(t *testing.T) {
	hour, log := core.PerHour(5), core.Limit{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}
	day := core.Limit{Quota: 9, Window: 24 * time.Hour}
	for name, limits := range map[string][]core.Limit{
		"r":                     {hour},
		"r-1h r-1d":             {hour, day},
		"r-1h r-1h-sliding_log": {hour, log},
		"r-1h r-1h-fixed_window r-1h-fixed_window-3": {hour, {Name: "r-1h-fixed_window", Quota: 6, Window: time.Minute}, {Quota: 7, Window: time.Hour, Algorithm: core.FixedWindow}},
		"r-1h own r-1d": {hour, {Name: "own", Quota: 6, Window: time.Minute}, day},
	} {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: limits}}}, newClock())
		var got []string
		for s := range l.Check(&request{}).Limits() {
			got = append(got, s.Limit.Name)
		}
		if strings.Join(got, " ") != name {
			t.Errorf("%v, want %s", got, name)
		}
	}
}

// A number about waits at the end of its range is in it.
func TestTheEndsOfTheRangesOfWaits(t *testing.T) {
	for name, change := range map[string]func(*core.Config){
		"the longest wait of a limiter": func(c *core.Config) { c.MaxWait = core.MaxWindow },
		"the longest wait of a rule":    func(c *core.Config) { c.Rules[0].MaxWait = core.MaxWindow },
		"the most who wait":             func(c *core.Config) { c.MaxWaiters = 1_000_000 },
		"the fewest who wait":           func(c *core.Config) { c.MaxWaiters = 1 },
	} {
		config := patient(0, core.PerSecond(1))
		change(&config)
		if _, err := core.New(config); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAlgorithmThatDoesNotExist(t *testing.T) {
	last := core.TokenBucket
	if l := (core.Limit{Quota: 1, Window: time.Hour, Algorithm: last}); l.Validate() != nil {
		t.Error(l.Validate())
	}
	l := core.Limit{Quota: 1, Window: time.Hour, Algorithm: last + 1}
	if err := l.Validate(); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), "Algorithm") {
		t.Errorf("%v", err)
	}
}

func TestAMemoryOfTheMostKeys(t *testing.T) {
	for keys, ok := range map[int64]bool{math.MaxInt32: true, 1 << 31: false, 1: true, -1: false} {
		if keys > math.MaxInt {
			continue // a processor of 32 bits
		}
		m, err := core.NewMemory(core.MemoryConfig{MaxKeys: int(keys)})
		if (err == nil) != ok {
			t.Errorf("MaxKeys %d: %v", keys, err)
		}
		if err == nil {
			_ = m.Close()
		}
	}
}

func oneRule(limits ...core.Limit) core.Config {
	return core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: limits}}}
}

func TestReconfigure(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMinute(5)), newClock())
	l.Check(&request{})
	if err := l.Reconfigure(oneRule(core.PerMinute(10), core.PerHour(3))); err != nil {
		t.Fatal(err)
	}
	d := l.Check(&request{})
	var got []int64
	for s := range d.Limits() {
		got = append(got, s.Remaining)
	}
	if len(got) != 2 || got[0] != 8 || got[1] != 2 {
		t.Errorf("left %v, want 8 of the limit that stayed and 2 of the new one", got)
	}

	for name, c := range map[string]core.Config{
		"another name":  {Name: "other", Rules: oneRule(core.PerMinute(1)).Rules},
		"another store": {Store: core.Must(core.NewMemory(core.MemoryConfig{})), Rules: oneRule(core.PerMinute(1)).Rules},
		"no rules":      {},
	} {
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
	rules := func(names ...string) (c core.Config) {
		for _, name := range names {
			c.Rules = append(c.Rules, core.Rule{Name: name, Limits: []core.Limit{core.PerMinute(5)}})
		}
		return c
	}
	for _, next := range []string{"removed", "new"} {
		l := newLimiter(t, rules("stays", "removed"), newClock())
		if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "stays", Key: "k"}, core.Hit{Rule: "removed", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []core.Config{rules("stays"), rules("stays", next)} {
			if err := l.Reconfigure(c); err != nil {
				t.Fatal(err)
			}
		}
		if !l.Allow(t.Context(), core.Hit{Rule: next, Key: "k"}) {
			t.Errorf("a key of rule %q is blocked", next)
		}
		if l.Allow(t.Context(), core.Hit{Rule: "stays", Key: "k"}) {
			t.Errorf("with rule %q: the block of the rule that stays has ended", next)
		}
	}
}

// Exactly as many are allowed as the highest quota allows, while
// the limits change all the time.
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

// reopening is a store that notices whether two Reopens overlap.
type reopening struct {
	core.Store
	core.Counters
	inside   atomic.Int32
	overlaps atomic.Int32
}

func (s *reopening) Open(limiter string, rules []core.StoreRule) (_ core.Counters, err error) {
	s.Counters, err = s.Store.Open(limiter, rules)
	return s, err
}

func (s *reopening) Reopen([]core.StoreRule) (core.Counters, error) {
	if s.inside.Add(1) > 1 {
		s.overlaps.Add(1)
	}
	for range 10 {
		runtime.Gosched()
	}
	s.inside.Add(-1)
	return s, nil
}

// If two Reconfigures overlapped, the limiter could end with the rules of the
// one and a store that has been prepared for those of the other.
func TestReconfiguresDoNotOverlap(t *testing.T) {
	s := &reopening{Store: core.Must(core.NewMemory(core.MemoryConfig{}))}
	c := oneRule(core.PerHour(5))
	c.Name, c.Store = "l", s
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
	if n := s.overlaps.Load(); n > 0 {
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
