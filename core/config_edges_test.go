package core_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
		"the most who wait":             func(c *core.Config) { c.MaxWaiters, c.MaxWaitersTotal = 1_000_000, 1_000_000 },
		"the fewest who wait":           func(c *core.Config) { c.MaxWaiters, c.MaxWaitersTotal = 1, 1 },
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
