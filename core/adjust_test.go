package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A charge is settled, also if another caller has charged the key at a later time before.
func TestAdjustSettlesToTheActualCost(t *testing.T) {
	for _, limit := range every {
		for _, limits := range [][]core.Limit{{limit}, {limit, core.PerMinute(80)}} {
			for _, actual := range []int64{0, 1, 10, 30, 100, 150} {
				c := newClock()
				l := newLimiter(t, oneRule(limits...), c)
				k := core.Hit{Rule: "r", Key: "k"}
				_, _ = l.Take(t.Context(), 1, k)
				c.advance(-time.Microsecond)
				d, _ := l.Take(t.Context(), 10, k)
				c.advance(time.Millisecond)
				if err := l.Adjust(t.Context(), d, actual); err != nil {
					t.Errorf("%v, %d: %v", limits, actual, err)
				}
				seen, _ := l.Peek(t.Context(), 0, k)
				for s := range seen.Limits() {
					if want := max(0, s.Limit.Quota-1-actual); s.Remaining != want {
						t.Errorf("%v, settled to %d: %d left of %s, want %d", limits, actual, s.Remaining, s.Limit.Name, want)
					}
				}
			}
		}
	}
}

// More than the quota is a debt: it takes longer to pay off than the quota does.
func TestADebtIsPaidOffByWaiting(t *testing.T) {
	c := newClock()
	l := newLimiter(t, oneRule(bucket(10, 10*time.Second)), c)
	k := core.Hit{Rule: "r", Key: "k"}
	d, _ := l.Take(t.Context(), 1, k)
	if err := l.Adjust(t.Context(), d, 15); err != nil {
		t.Fatal(err)
	}
	if d, _ = l.Take(t.Context(), 1, k); d.Allowed || d.RetryAfter != 6*time.Second {
		t.Errorf("15 hits of 10: %v, wait %v, want 6s", d.Allowed, d.RetryAfter)
	}
	c.advance(6 * time.Second)
	if d, _ = l.Take(t.Context(), 1, k); !d.Allowed {
		t.Errorf("after the wait: %v", d)
	}
}

func TestWhatAdjustLeavesAlone(t *testing.T) {
	s := newCounting()
	config := oneRule(core.PerMinute(5), core.PerHour(9))
	config.Store = s
	l := newLimiter(t, config, nil)
	k := core.Hit{Rule: "r", Key: "k"}
	d, _ := l.Take(t.Context(), 2, k)
	if err := l.Adjust(t.Context(), d, -1); !errors.Is(err, core.ErrConfig) {
		t.Errorf("a negative cost: %v", err)
	}
	denied, _ := l.Take(t.Context(), 5, k)
	none, _ := l.Take(t.Context(), 5)
	peeked, _ := l.Peek(t.Context(), 1, k)
	free, _ := l.Take(t.Context(), 0, k)
	for _, d := range []core.Decision{{}, denied, none, peeked} {
		if err := l.Adjust(t.Context(), d, 5); err != nil {
			t.Error(err)
		}
	}
	if err := l.Adjust(t.Context(), free, 0); err != nil || s.refunds != 0 {
		t.Errorf("to what was charged: %v, %d refunds", err, s.refunds)
	}
	for _, cost := range []int64{3, 3, 0} { // the second time it is settled
		if err := l.Adjust(t.Context(), d, cost); err != nil {
			t.Error(err)
		}
	}
	if got := left(t, l, "r", "k"); got != 2 || s.refunds != 0 {
		t.Errorf("%d left, want 2; %d refunds", got, s.refunds)
	}
}

// An Adjust that charged nothing may be tried again; one whose reply was lost may not.
func TestAnAdjustThatFails(t *testing.T) {
	for _, row := range []struct {
		fault error
		want  int64
	}{{fmt.Errorf("read only: %w", core.ErrNotCharged), 4}, {errors.New("no reply"), 7}} {
		s, log, config := newCounting(), new(lines), oneRule(core.PerMinute(9), core.PerHour(20))
		config.Store, config.Log = s, log.logger()
		l := newLimiter(t, config, nil)
		d, err := l.Take(t.Context(), 2, core.Hit{Rule: "r", Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		s.fault = row.fault
		if err := l.Adjust(t.Context(), d, 5); !errors.Is(err, row.fault) {
			t.Errorf("%v, want %v", err, row.fault)
		}
		s.fault = nil
		if err := l.Adjust(t.Context(), d, 5); err != nil {
			t.Error(err)
		}
		if got := left(t, l, "r", "k"); got != row.want {
			t.Errorf("%v: %d left, want %d", row.fault, got, row.want)
		}
		if n := len(log.take()); n != 1 {
			t.Errorf("%v: %d lines in the log, want one", row.fault, n)
		}
	}
}

// If the charge of one key is made and the refund of another is not, a second Adjust does not
// charge again.
func TestAdjustDoesNotChargeTwiceIfItsRefundFails(t *testing.T) {
	charges := 0
	config := core.Config{Rules: numbered(2), Store: aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
		switch b.Op {
		case core.OpCharge:
			charges++
		case core.OpRefund:
			return core.ErrNotCharged
		}
		return c.Do(ctx, b)
	})}
	config.Rules[0].Cost, config.Rules[1].Cost = costs(1), costs(9)
	l := newLimiter(t, config, nil)
	d := l.Check(&request{})
	l.Settle(&request{}, d, core.Outcome{Status: 200})
	for i := range 2 {
		if err := l.Adjust(t.Context(), d, 5); (err == nil) != (i > 0) || errors.Is(err, core.ErrNotCharged) {
			t.Errorf("adjust %d: %v", i, err)
		}
	}
	if charges != 1 {
		t.Errorf("%d charges, want 1", charges)
	}
}

// A store gets for a refund what it has said of the charge.
func TestARefundGetsTheResultsOfTheCharge(t *testing.T) {
	var charge, refund core.Batch
	keep := func(b *core.Batch) core.Batch {
		kept := *b
		kept.Op, kept.Allowed, kept.Items = 0, true, slices.Clone(b.Items)
		for i := range kept.Items {
			it := &kept.Items[i]
			it.Key, it.Quotas, it.Results = slices.Clone(it.Key), slices.Clone(it.Quotas), slices.Clone(it.Results)
		}
		return kept
	}
	for _, hits := range [][]core.Hit{
		{{Rule: "r0", Key: "k"}},
		{{Rule: "r0", Key: "k", Quotas: []int64{20}}, {Rule: "r1", Key: "k", Quotas: []int64{30}}},
	} {
		l := newLimiter(t, core.Config{Rules: numbered(2), Store: aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
			if b.Op == core.OpRefund {
				refund = keep(b)
			}
			err := c.Do(ctx, b)
			if b.Op == core.OpTake {
				b.Degraded = true
				b.Items[len(hits)-1].At++
				charge = keep(b)
			}
			return err
		})}, nil)
		d, err := l.Take(t.Context(), 3, hits...)
		_, _ = l.Peek(t.Context(), 1)
		if err = errors.Join(err, l.Adjust(t.Context(), d, 0)); err != nil || !reflect.DeepEqual(refund, charge) {
			t.Errorf("%v: the refund of\n%+v is\n%+v", err, charge, refund)
		}
	}
}

// A store is never told to charge more than MaxQuota.
func TestACostAboveMaxQuotaMeansMaxQuota(t *testing.T) {
	for name, set := range map[string]func(l *core.Limiter, d core.Decision) error{
		"SetCost": func(_ *core.Limiter, d core.Decision) error { d.SetCost(math.MaxInt64); return nil },
		"Adjust":  func(l *core.Limiter, d core.Decision) error { return l.Adjust(t.Context(), d, core.MaxQuota+1) },
		"Adjust after Settle": func(l *core.Limiter, d core.Decision) error {
			l.Settle(&request{}, d, core.Outcome{Status: 200})
			return l.Adjust(t.Context(), d, math.MaxInt64)
		},
	} {
		var charged []int64
		config := oneRule(core.PerHour(100))
		config.Rules[0].Cost = costs(10)
		config.Store = aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
			if b.Op == core.OpCharge {
				charged = append(charged, b.Items[0].Cost)
			}
			return c.Do(ctx, b)
		})
		l := newLimiter(t, config, nil)
		d := l.Check(&request{})
		if err := set(l, d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		if !slices.Equal(charged, []int64{core.MaxQuota - 10}) {
			t.Errorf("%s: the store charges %v, want %d", name, charged, int64(core.MaxQuota-10))
		}
	}
}

// A stream that outlives the handler settles its request itself, if the handler has said nothing
// and Settle has changed nothing.
func TestAdjustAfterTheHandlerHasReturned(t *testing.T) {
	for name, row := range map[string]struct {
		said           int64 // by the handler; 0: nothing
		counts, clears bool
		want           map[string]int64
	}{
		"the stream says it":         {0, true, false, map[string]int64{"requests": 99, "words": 50, "answers": 50}},
		"the handler has said it":    {30, true, false, map[string]int64{"requests": 99, "words": 70, "answers": 70}},
		"Settle has refunded a rule": {0, false, false, map[string]int64{"requests": 99, "words": 90, "answers": 100}},
		"Settle has cleared a rule":  {0, true, true, map[string]int64{"requests": 99, "words": 90, "answers": 100}},
		"both clear and say":         {30, true, true, map[string]int64{"requests": 99, "words": 70, "answers": 100}},
		"both":                       {30, false, false, map[string]int64{"requests": 99, "words": 70, "answers": 100}},
	} {
		counts := func(core.Request, core.Outcome) bool { return row.counts }
		clears := func(core.Request, core.Outcome) bool { return row.clears }
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "requests", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}},
			{Name: "words", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: costs(10)},
			{Name: "answers", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: costs(10), Counts: counts, Clears: clears},
		}}, newClock())
		d := l.Check(&request{})
		if row.said > 0 {
			d.SetCost(row.said)
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		for range 2 {
			if err := l.Adjust(t.Context(), d, 50); err != nil {
				t.Error(err)
			}
			l.Settle(&request{}, d, core.Outcome{Status: 200})
		}
		for rule, want := range row.want {
			if got := left(t, l, rule, "k"); got != want {
				t.Errorf("%s: %s: %d left, want %d", name, rule, got, want)
			}
		}
	}
}

// What Counts gives back is what the request was charged, whatever a handler says or does.
func TestAHandlerThatSettlesBesideCounts(t *testing.T) {
	for _, row := range []struct {
		adjusts []int64
		counts  bool
		used    int64 // of the rule with Counts
	}{
		{[]int64{400}, false, 500},
		{[]int64{400}, true, 900},
		{[]int64{0}, false, 500},
		{[]int64{0}, true, 500},
		{[]int64{0, 300}, true, 500},
	} {
		asked := 0
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Cost: costs(100), Counts: func(core.Request, core.Outcome) bool { return row.counts }},
			{Name: "f", Key: static("k"), Limits: []core.Limit{core.PerHour(1000)}, Clears: func(core.Request, core.Outcome) bool { asked++; return true }},
		}}, newClock())
		if _, err := l.Take(t.Context(), 500, core.Hit{Rule: "r", Key: "k"}); err != nil {
			t.Fatal(err)
		}
		d := l.Check(&request{})
		for _, cost := range row.adjusts {
			if err := l.Adjust(t.Context(), d, cost); err != nil {
				t.Error(err)
			}
		}
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		if got := 1000 - left(t, l, "r", "k"); got != row.used || asked != 1 {
			t.Errorf("adjusted to %d, counts %t: %d are used, want %d; Clears was asked %d times", row.adjusts, row.counts, got, row.used, asked)
		}
	}
}

func ExampleLimiter_Adjust() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "words", Limits: []core.Limit{core.PerHour(1000)}}}}))
	ctx, alice := context.Background(), core.Hit{Rule: "words", Key: "alice"}
	d, _ := limiter.Take(ctx, 200, alice) // what the work may cost
	_ = limiter.Adjust(ctx, d, 340)       // what it has cost
	d, _ = limiter.Peek(ctx, 0, alice)
	fmt.Println(d.Remaining)
	// Output: 660
}
