package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// What was charged is settled, and what is granted is given, although the client has gone.
func TestSettlingAfterTheContextHasEnded(t *testing.T) {
	l := newLimiter(t, core.Config{
		Store: aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Do(ctx, b)
		}),
		Rules: []core.Rule{
			{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Counts: never},
			{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Clears: always},
			{Name: "weighed", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Cost: costs(1)},
			{Name: "taken", Limits: []core.Limit{core.PerMinute(9)}},
			{Name: "granted", Limits: []core.Limit{core.PerMinute(9)}},
		},
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := &request{ctx: ctx}
	d := l.Check(r)
	taken, err := l.Take(ctx, 4, core.Hit{Rule: "taken", Key: "k"}, core.Hit{Rule: "granted", Key: "k"})
	if err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	cancel()
	d.SetCost(3)
	l.Settle(r, d, core.Outcome{Canceled: true})
	_, grantErr := l.Grant(ctx, 2, core.Hit{Rule: "granted", Key: "k"})
	if err := errors.Join(grantErr, l.Adjust(ctx, taken, 5)); err != nil {
		t.Error(err)
	}
	for rule, want := range map[string]int64{"returned": 9, "cleared": 9, "weighed": 6, "taken": 4, "granted": 6} {
		if got := left(t, l, rule, "k"); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

var (
	never  = func(core.Request, core.Outcome) bool { return false }
	always = func(core.Request, core.Outcome) bool { return true }
)

func TestSettle(t *testing.T) {
	c := newClock()
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "all", Key: static("k"), Limits: []core.Limit{core.PerMinute(20)}},
		{
			Name: "failures", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)},
			Counts: func(_ core.Request, o core.Outcome) bool { return o.Status >= 400 && o.Status < 500 },
			Clears: func(_ core.Request, o core.Outcome) bool { return o.Status < 400 },
		},
	}}, c)
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

	denied, _ := l.Take(t.Context(), 99, core.Hit{Rule: "all"}, core.Hit{Rule: "failures"})
	for _, d := range []core.Decision{{}, denied} {
		l.Settle(&request{}, d, core.Outcome{}) // of nothing
	}
	if d, _ := l.Take(t.Context(), 1, core.Hit{Rule: "failures", Key: "k"}); d.NeedsOutcome() {
		t.Error("a Take wants to know an outcome")
	}
}

// A refund depends on what the Take has said of the same limit: of a token
// bucket, how long it takes to pay the charge off.
func TestASettledRuleIsRefundedByItsOwnResults(t *testing.T) {
	rule := func(name string, counts func(core.Request, core.Outcome) bool, windows ...time.Duration) core.Rule {
		r := core.Rule{Name: name, Key: static("k"), Counts: counts}
		for _, w := range windows {
			r.Limits = append(r.Limits, bucket(10, w))
		}
		return r
	}
	long := rule("long", never, time.Hour)
	for name, rules := range map[string][]core.Rule{
		"the last of two":     {rule("short", nil, 10*time.Millisecond, 20*time.Millisecond), long},
		"the first of two":    {long, rule("short", nil, 10*time.Millisecond)},
		"the middle of three": {rule("short", nil, 10*time.Millisecond, 20*time.Millisecond), long, rule("counts", always, time.Second)},
	} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: rules}, c)
		d := l.Check(&request{})
		c.advance(time.Minute)
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		if got := left(t, l, "long", "k"); got != 10 {
			t.Errorf("%s: %d hits left after the refund, want 10", name, got)
		}
	}
}

// Many requests at once reserve 10 hits and use 0 to 30. What is stored is what was used.
func TestManyEstimatesAtOnce(t *testing.T) {
	seed := rand.Uint64()
	for _, limit := range every {
		limit.Quota = 5000
		config := oneRule(limit)
		config.Rules[0].Cost = costs(10)
		l := newLimiter(t, config, newClock())
		var used atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				actual := rand.New(rand.NewPCG(seed, uint64(i))).Int64N(31)
				d := l.Check(&request{})
				if d.SetCost(actual) {
					used.Add(actual)
				}
				l.Settle(&request{}, d, core.Outcome{Status: 200})
			})
		}
		wg.Wait()
		if got, want := left(t, l, "r", "k"), limit.Quota-used.Load(); got != want || hooktest.Count(l).Allowed != 100 {
			t.Errorf("%v, seed %d: %d left, and %d were used", limit, seed, got, used.Load())
		}
	}
}

// SetCost and Adjust settle the rules with a Cost, and leave alone those that only count.
func TestWhichRulesAHandlerSettles(t *testing.T) {
	rule := func(name string, cost func(core.Request) (int64, error)) core.Rule {
		return core.Rule{Name: name, Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost}
	}
	skipped := rule("b", costs(10))
	skipped.Key = fails(core.SkipRule)
	for _, row := range []struct {
		name   string
		config core.Config
		a, b   int64 // left; 0: 100 without the cost
		said   bool
	}{
		{"no cost", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 99, 99, false},
		{"one rule's", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", costs(10))}}, 99, 0, true},
		{"both rules'", core.Config{Rules: []core.Rule{rule("a", costs(10)), rule("b", costs(10))}}, 0, 0, true},
		{"a rule's that does not apply", core.Config{Rules: []core.Rule{rule("a", nil), skipped}}, 99, 100, false},
		{"the hooks'", core.Config{Hooks: hooktest.Funcs{CostFunc: costs(10)}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 90, 90, false},
		{"the hooks' and a rule's", core.Config{Hooks: hooktest.Funcs{CostFunc: costs(10)}, Rules: []core.Rule{rule("a", nil), rule("b", costs(10))}}, 90, 0, true},
		{"an estimate of nothing", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", costs(0))}}, 99, 0, true},
	} {
		for i, way := range []string{"SetCost", "SetCost", "Adjust", "Adjust", "Adjust after Settle", "Adjust after Settle"} {
			last := []int64{25, 4}[i%2]
			l := newLimiter(t, row.config, newClock())
			d := l.Check(&request{})
			settle := func() {
				if d.NeedsOutcome() != row.said || d.Estimated() != row.said {
					t.Errorf("%s: NeedsOutcome %t, Estimated %t, want %t", row.name, d.NeedsOutcome(), d.Estimated(), row.said)
				}
				l.Settle(&request{}, d, core.Outcome{Status: 200})
			}
			if way == "Adjust after Settle" {
				settle()
			}
			for _, cost := range []int64{-1, math.MaxInt64, last} { // the last one counts
				switch {
				case way == "SetCost":
					if said := d.SetCost(cost); said != (row.said && cost >= 0) {
						t.Errorf("%s: SetCost(%d) is %t", row.name, cost, said)
					}
				case way == "Adjust" && cost >= 0 || cost == last:
					if err := l.Adjust(t.Context(), d, cost); err != nil {
						t.Error(err)
					}
				}
			}
			settle()
			if a, b := left(t, l, "a", "k"), left(t, l, "b", "k"); a != cmp.Or(row.a, 100-last) || b != cmp.Or(row.b, 100-last) || d.SetCost(3) && row.said {
				t.Errorf("%s, %s(%d): %d and %d left", row.name, way, last, a, b)
			}
		}
	}
}

// A handler's goroutine may outlive it: a cost that comes too late for Settle is not said to count.
func TestSetCostWhileItIsSettled(t *testing.T) {
	config := oneRule(core.PerHour(100_000))
	config.Rules[0].Cost = costs(10)
	l := newLimiter(t, config, newClock())
	want := int64(100_000)
	for range 5000 {
		d := l.Check(&request{})
		var said bool
		var late sync.WaitGroup
		late.Go(func() { said = d.SetCost(1) })
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		late.Wait()
		if want -= 10; said {
			want += 9
		}
		if got := left(t, l, "r", "k"); got != want || d.SetCost(2) {
			t.Fatalf("said %t: %d left, want %d", said, got, want)
		}
	}
}

// A stream may refund its request while Settle runs. What Counts does not count is refunded too.
func TestAnAdjustWhileItIsSettled(t *testing.T) {
	var d core.Decision
	var l *core.Limiter
	rule := func(name string, cost func(core.Request) (int64, error)) core.Rule {
		return core.Rule{Name: name, Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: func(core.Request, core.Outcome) bool {
			return l.Adjust(t.Context(), d, 0) != nil
		}}
	}
	l = newLimiter(t, core.Config{Rules: []core.Rule{rule("requests", nil), rule("words", costs(10))}}, newClock())
	d = l.Check(&request{})
	l.Settle(&request{}, d, core.Outcome{Status: 404})
	if a, b := left(t, l, "requests", "k"), left(t, l, "words", "k"); a != 100 || b != 100 {
		t.Errorf("%d and %d left, want 100 and 100", a, b)
	}
}

// httputil.ReverseProxy panics if the client hangs up: what the handler has said until then
// was done. A handler that says less and panics may not have done its work.
func TestAPanicChargesTheCostThatWasSetIfItIsMoreThanTheEstimate(t *testing.T) {
	config := oneRule(core.PerHour(100))
	config.Rules[0].Cost = costs(10)
	for cost, want := range map[int64]int64{25: 75, 10: 90, 3: 90, 0: 90} {
		l := newLimiter(t, config, newClock())
		d := l.Check(&request{})
		d.SetCost(cost)
		l.Settle(&request{}, d, core.Outcome{Status: 500, Panicked: true})
		if got := left(t, l, "r", "k"); got != want {
			t.Errorf("a cost of %d: %d left, want %d", cost, got, want)
		}
	}
}

// Only a charged request of a rule with Counts, Clears or Cost needs the outcome: see also TestWhichRulesAHandlerSettles.
func TestWhichDecisionsNeedTheOutcome(t *testing.T) {
	for _, row := range []struct {
		name   string
		rule   core.Rule
		method string
		cost   int64 // by the hooks
		want   bool
	}{
		{"a request that costs nothing", core.Rule{Counts: always, Clears: always}, "GET", 0, false},
		{"Counts", core.Rule{Counts: always}, "GET", 1, true},
		{"Clears", core.Rule{Clears: always}, "GET", 1, true},
		{"a rule that is not for the request", core.Rule{Counts: always, Clears: always, Cost: costs(1)}, "", 1, false},
	} {
		get := row.rule
		get.Name, get.Key, get.Limits = "get", methodKey("GET"), []core.Limit{core.PerMinute(1)}
		all := numbered(1)[0]
		for _, rules := range [][]core.Rule{{get, all}, {all, get}, {get}} {
			l := newLimiter(t, core.Config{Rules: rules, Hooks: hooktest.Funcs{CostFunc: costs(row.cost)}}, newClock())
			if d := l.Check(&request{method: row.method}); d.NeedsOutcome() != row.want {
				t.Errorf("%s, %d rules: %t", row.name, len(rules), d.NeedsOutcome())
			}
			if d := l.Check(&request{method: "GET"}); !d.Allowed && d.NeedsOutcome() {
				t.Errorf("%s: a denied request needs the outcome", row.name)
			}
		}
	}
}

func ExampleDecision_SetCost() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{
		Name: "words", Key: static("alice"), Limits: []core.Limit{core.PerHour(1000)},
		Cost: func(core.Request) (int64, error) { return 200, nil }, // an estimate
	}}}))
	r := &request{}
	d := limiter.Check(r)
	d.SetCost(340)                                  // an adapter's SetCost does this for a handler
	limiter.Settle(r, d, core.Outcome{Status: 200}) // an adapter does this after the handler
	d, _ = limiter.Peek(context.Background(), 0, core.Hit{Rule: "words", Key: "alice"})
	fmt.Println(d.Remaining)
	// Output: 660
}
