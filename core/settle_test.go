package core_test

import (
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

func TestARequestIsSettledAfterItsClientHasGone(t *testing.T) {
	settled := map[core.Op][]error{} // the states of the contexts
	s := &around{core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		settled[b.Op] = append(settled[b.Op], ctx.Err())
		return c.Do(ctx, b)
	}}
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{
		{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Counts: func(core.Request, core.Outcome) bool { return false }},
		{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerMinute(5)}, Clears: func(core.Request, core.Outcome) bool { return true }},
	}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := &request{ctx: ctx}
	d := l.Check(r)
	cancel()
	l.Settle(r, d, core.Outcome{Status: 200})
	if refund, reset := settled[core.OpRefund], settled[core.OpReset]; len(refund) != 1 || refund[0] != nil || len(reset) != 1 || reset[0] != nil {
		t.Errorf("the refund got contexts in the states %v and the reset %v, want one context each that has not ended", refund, reset)
	}
	if a, b := left(t, l, "returned", "k"), left(t, l, "cleared", "k"); a != 5 || b != 5 {
		t.Errorf("%d and %d left, want 5 and 5", a, b)
	}
}

func TestASettlementThatFailsIsCounted(t *testing.T) {
	s := newCounting()
	l := newLimiter(t, core.Config{Name: "api", Store: s, Log: (&lines{}).logger(), Rules: []core.Rule{
		{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Counts: func(core.Request, core.Outcome) bool { return false }},
	}}, nil)
	d := l.Check(&request{})
	s.fault = errFault
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	if got := l.Stats(); got.Failed != 1 || got.Allowed != 1 {
		t.Errorf("%+v, want 1 allowed and 1 failed", got)
	}
}

var (
	never  = func(core.Request, core.Outcome) bool { return false }
	always = func(core.Request, core.Outcome) bool { return true }
)

// A refund depends on what the Take has said of the same limit: of a token
// bucket, how long it takes to pay the charge off.
func TestASettledRuleIsRefundedByItsOwnResults(t *testing.T) {
	bucket := func(window time.Duration) core.Limit {
		return core.Limit{Quota: 10, Window: window, Algorithm: core.TokenBucket}
	}
	for name, rules := range map[string][]core.Rule{
		"the last of two": {
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond), bucket(20 * time.Millisecond)}},
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
		},
		"the first of two": {
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond)}},
		},
		"the middle of three": {
			{Name: "short", Key: static("k"), Limits: []core.Limit{bucket(10 * time.Millisecond), bucket(20 * time.Millisecond)}},
			{Name: "long", Key: static("k"), Limits: []core.Limit{bucket(time.Hour)}, Counts: never},
			{Name: "counts", Key: static("k"), Limits: []core.Limit{bucket(time.Second)}, Counts: always},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			l := newLimiter(t, core.Config{Rules: rules}, c)
			r := &request{}
			d := l.Check(r)
			c.advance(time.Minute)
			l.Settle(r, d, core.Outcome{Status: 200})
			if got := left(t, l, "long", "k"); got != 10 {
				t.Errorf("%d hits left after the refund, want 10", got)
			}
		})
	}
}

// What is settled is settled once, whether by Settle or by Refund.
func TestADecisionIsSettledOnce(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(10)}, Counts: never}}}, newClock())
	r := &request{}
	for range 5 {
		l.Check(r)
	}
	d := l.Check(r)
	l.Settle(r, d, core.Outcome{})
	l.Settle(r, d, core.Outcome{})
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	if got := left(t, l, "r", "k"); got != 5 {
		t.Errorf("%d hits left, want 5", got)
	}
	d = l.Check(r)
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	l.Settle(r, d, core.Outcome{})
	if got := left(t, l, "r", "k"); got != 5 {
		t.Errorf("%d hits left after a refund and Settle, want 5", got)
	}
}

func TestACounterNamedTwiceIsChargedOnce(t *testing.T) {
	l := twoRules(t, newClock())
	a, b := core.Hit{Rule: "ip", Key: "k"}, core.Hit{Rule: "ip", Key: "j"}
	for i, hits := range [][]core.Hit{{a, a}, {a, b, a}, {b, a, a}, {a, a, b, b}, {a, a, a}} {
		before := left(t, l, "ip", "k")
		if _, err := l.Take(t.Context(), 1, hits...); err != nil {
			t.Fatal(err)
		}
		if got := left(t, l, "ip", "k"); got != before-1 {
			t.Errorf("take %d of %v: %d hits left, want %d", i, hits, got, before-1)
		}
	}
}

// 1,000 requests at once reserve 10 and use 0 to 30. What is stored is what was used, and no more is
// allowed than the estimates were wrong by.
func TestManyEstimatesAtOnce(t *testing.T) {
	const quota, reserve, most = 3000, 10, 30
	seed := rand.Uint64()
	for _, algorithm := range []core.Algorithm{core.SlidingWindow, core.FixedWindow, core.TokenBucket} {
		// peak is the most that have run at a time, from before the take to after the settlement.
		var used, running, peak, worst atomic.Int64
		l := newLimiter(t, core.Config{Rules: []core.Rule{{
			Name: "r", Key: static("k"), Limits: []core.Limit{{Quota: quota, Window: time.Hour, Algorithm: algorithm}},
			Cost: func(core.Request) (int64, error) {
				raise(&peak, running.Add(1))
				return reserve, nil
			},
		}}}, newClock())
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				d := l.Check(&request{})
				defer running.Add(-1)
				if !d.Allowed {
					return
				}
				actual := r.Int64N(most + 1)
				d.SetCost(actual)
				before := used.Add(actual) - actual
				raise(&worst, before+actual-quota-peak.Load()*(most-reserve))
				l.Settle(&request{}, d, core.Outcome{Status: 200})
			})
		}
		wg.Wait()
		if got, want := left(t, l, "r", "k"), max(0, quota-used.Load()); got != want {
			t.Errorf("%v, seed %d: %d left, and %d of %d were used", algorithm, seed, got, used.Load(), quota)
		}
		// A request is denied while others have reserved what they do not use in the end.
		if used.Load() < quota-peak.Load()*reserve {
			t.Errorf("%v, seed %d: only %d were used", algorithm, seed, used.Load())
		}
		if worst.Load() > 0 {
			t.Errorf("%v, seed %d: %d of %d were used, %d above the error of %d estimates", algorithm, seed, used.Load(), quota, worst.Load(), peak.Load())
		}
	}
}

// raise sets a number to n if it is lower.
func raise(a *atomic.Int64, n int64) {
	for was := a.Load(); n > was && !a.CompareAndSwap(was, n); was = a.Load() {
	}
}

// Which rules SetCost settles: those with a Cost.
func TestWhatSetCostSettles(t *testing.T) {
	ten := func(core.Request) (int64, error) { return 10, nil }
	rule := func(name string, cost func(core.Request) (int64, error)) core.Rule {
		return core.Rule{Name: name, Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost}
	}
	for _, row := range []struct {
		name   string
		config core.Config
		a, b   int64 // left after SetCost(25)
		said   bool
	}{
		{"no cost", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 99, 99, false},
		{"one rule's", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", ten)}}, 99, 75, true},
		{"both rules'", core.Config{Rules: []core.Rule{rule("a", ten), rule("b", ten)}}, 75, 75, true},
		{"the hooks'", core.Config{Hooks: hooktest.Funcs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", nil)}}, 90, 90, false},
		{"the hooks' and a rule's", core.Config{Hooks: hooktest.Funcs{CostFunc: ten}, Rules: []core.Rule{rule("a", nil), rule("b", ten)}}, 90, 75, true},
		{"an estimate of nothing", core.Config{Rules: []core.Rule{rule("a", nil), rule("b", func(core.Request) (int64, error) { return 0, nil })}}, 99, 75, true},
	} {
		l := newLimiter(t, row.config, newClock())
		d := l.Check(&request{})
		if said := d.SetCost(25); said != row.said || d.Estimated() != row.said {
			t.Errorf("%s: SetCost %t, Estimated %t, want %t", row.name, said, d.Estimated(), row.said)
		}
		if d.NeedsOutcome() {
			l.Settle(&request{}, d, core.Outcome{Status: 200})
			l.Settle(&request{}, d, core.Outcome{Status: 200})
		}
		if a, b := left(t, l, "a", "k"), left(t, l, "b", "k"); a != row.a || b != row.b {
			t.Errorf("%s: %d and %d left, want %d and %d", row.name, a, b, row.a, row.b)
		}
	}
}

// What Counts and Clears decide comes before the cost.
func TestSetCostBesideCountsAndClears(t *testing.T) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	yes, no := func(core.Request, core.Outcome) bool { return true }, func(core.Request, core.Outcome) bool { return false }
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "returned", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: no},
		{Name: "cleared", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Clears: yes},
		{Name: "kept", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: yes},
	}}, newClock())
	d := l.Check(&request{})
	d.SetCost(30)
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	for rule, want := range map[string]int64{"returned": 100, "cleared": 100, "kept": 70} {
		if got := left(t, l, rule, "k"); got != want {
			t.Errorf("%s: %d left, want %d", rule, got, want)
		}
	}
}

// httputil.ReverseProxy panics if the client hangs up: what the handler has said until then
// was done. A handler that says less and panics may not have done its work.
func TestAPanicChargesTheCostThatWasSetIfItIsMoreThanTheEstimate(t *testing.T) {
	ten := func(core.Request) (int64, error) { return 10, nil }
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: ten}}}, newClock())
	for cost, want := range map[int64]int64{25: 75, 10: 90, 3: 90, 0: 90} {
		if err := l.Reset(t.Context(), core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		d := l.Check(&request{})
		d.SetCost(cost)
		l.Settle(&request{}, d, core.Outcome{Status: 500, Panicked: true})
		if got := left(t, l, "r", "k"); got != want {
			t.Errorf("a cost of %d: %d left, want %d", cost, got, want)
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

// Adjust on the decision of a request settles what SetCost settles, and no rule that only counts.
func TestAdjustOfARequestLeavesRulesThatCountAlone(t *testing.T) {
	cost := func(core.Request) (int64, error) { return 10, nil }
	skip := func(dst []byte, _ core.Request) ([]byte, error) { return dst, core.SkipRule }
	count := core.Rule{Name: "count", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}}
	weigh := core.Rule{Name: "weigh", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Cost: cost}
	skipped := weigh
	skipped.Key = skip
	for name, row := range map[string]struct {
		rules []core.Rule
		weigh int64 // left
	}{
		"one of two rules weighs":      {[]core.Rule{count, weigh}, 600},
		"the rule that weighs is left": {[]core.Rule{count, skipped}, 1000},
		"no rule weighs":               {[]core.Rule{count}, -1},
	} {
		for _, settled := range []bool{false, true} {
			l := newLimiter(t, core.Config{Rules: row.rules}, newClock())
			d := l.Check(&request{})
			settle := func() {
				if d.NeedsOutcome() {
					l.Settle(&request{}, d, core.Outcome{Status: 200})
				}
			}
			if settled {
				settle()
			}
			for range 2 {
				if err := l.Adjust(t.Context(), d, 400); err != nil {
					t.Error(err)
				}
			}
			settle()
			if got := left(t, l, "count", "k"); got != 999 {
				t.Errorf("%s, settled %t: %d are left of the rule that counts, want 999", name, settled, got)
			}
			if row.weigh >= 0 {
				if got := left(t, l, "weigh", "k"); got != row.weigh {
					t.Errorf("%s, settled %t: %d are left of the rule that weighs, want %d", name, settled, got, row.weigh)
				}
			}
		}
	}
}

// What Counts gives back is what the request was charged, whatever a handler says or does.
func TestAHandlerThatSettlesBesideCounts(t *testing.T) {
	for name, row := range map[string]struct {
		handler func(l *core.Limiter, d core.Decision) error
		counts  bool
		used    int64 // of the rule with Counts
		clears  int   // how often Clears is asked
	}{
		"more":                    {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 400) }, false, 500, 1},
		"more, and it counts":     {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 400) }, true, 900, 1},
		"a refund":                {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 0) }, false, 500, 1},
		"a refund, and it counts": {func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, 0) }, true, 500, 1},
		"a refund, then a cost": {func(l *core.Limiter, d core.Decision) error {
			err := l.Adjust(t.Context(), d, 0)
			d.SetCost(300)
			return err
		}, true, 500, 1},
		"a refund and an adjustment": {func(l *core.Limiter, d core.Decision) error {
			return errors.Join(l.Adjust(t.Context(), d, 0), l.Adjust(t.Context(), d, 300))
		}, true, 500, 1},
	} {
		asked := 0
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Cost: func(core.Request) (int64, error) { return 100, nil }, Counts: func(core.Request, core.Outcome) bool { return row.counts }},
			{Name: "f", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Clears: func(core.Request, core.Outcome) bool { asked++; return true }},
		}}, newClock())
		if _, err := l.Take(t.Context(), 500, core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		d := l.Check(&request{})
		if err := row.handler(l, d); err != nil {
			t.Error(err)
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		if got := 1000 - left(t, l, "r", "k"); got != row.used || asked != row.clears {
			t.Errorf("%s: %d are used, want %d; Clears was asked %d times, want %d", name, got, row.used, asked, row.clears)
		}
	}
}

// A store is never told to charge more than MaxQuota.
func TestACostAboveMaxQuotaMeansMaxQuota(t *testing.T) {
	for _, cost := range []int64{core.MaxQuota, core.MaxQuota + 1, math.MaxInt64} {
		for name, set := range map[string]func(l *core.Limiter, d core.Decision) error{
			"SetCost": func(l *core.Limiter, d core.Decision) error {
				d.SetCost(cost)
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return nil
			},
			"Adjust": func(l *core.Limiter, d core.Decision) error {
				err := l.Adjust(t.Context(), d, cost)
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return err
			},
			"Adjust after Settle": func(l *core.Limiter, d core.Decision) error {
				l.Settle(&request{}, d, core.Outcome{Status: 200})
				return l.Adjust(t.Context(), d, cost)
			},
		} {
			s := newFaulty()
			l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{
				Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: func(core.Request) (int64, error) { return 10, nil },
			}}}, nil)
			d := l.Check(&request{})
			if err := set(l, d); err != nil {
				t.Errorf("%s(%d): %v", name, cost, err)
			}
			if len(s.charged) != 1 || s.charged[0] != core.MaxQuota-10 {
				t.Errorf("%s(%d): the store charges %v, want %d", name, cost, s.charged, int64(core.MaxQuota-10))
			}
		}
	}
}
