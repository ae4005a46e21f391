package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// every is a limit of each algorithm, of 100 hits an hour.
var every = []core.Limit{
	core.PerHour(100),
	{Quota: 100, Window: time.Hour, Algorithm: core.FixedWindow},
	{Quota: 100, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	{Quota: 100, Window: time.Hour, Algorithm: core.SlidingLog},
	{Quota: 100, Window: time.Hour, Algorithm: core.TokenBucket},
}

func TestAdjustSettlesToTheActualCost(t *testing.T) {
	for _, limit := range every {
		for _, limits := range [][]core.Limit{{limit}, {limit, core.PerMinute(80)}} {
			for _, actual := range []int64{0, 1, 10, 30, 100, 150} {
				c := newClock()
				l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}}}, c)
				k := core.Hit{Rule: "r", Key: "k"}
				d, err := l.Take(t.Context(), 10, k)
				if err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				c.advance(time.Millisecond)
				if err := l.Adjust(t.Context(), d, actual); err != nil {
					t.Errorf("%v, %d: %v", limits, actual, err)
				}
				seen, _ := l.Peek(t.Context(), 0, k)
				for s := range seen.Limits() {
					if want := max(0, s.Limit.Quota-actual); s.Remaining != want {
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
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{{Quota: 10, Window: 10 * time.Second, Algorithm: core.TokenBucket}}}}}, c)
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
	l := newLimiter(t, core.Config{Name: "l", Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5), core.PerHour(9)}}}}, newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	if err := l.Adjust(t.Context(), core.Decision{}, 5); err != nil {
		t.Errorf("no decision: %v", err)
	}
	d, _ := l.Take(t.Context(), 2, k)
	if err := l.Adjust(t.Context(), d, -1); !errors.Is(err, core.ErrNegativeCost) {
		t.Errorf("a negative cost: %v", err)
	}
	denied, _ := l.Take(t.Context(), 5, k)
	none, _ := l.Take(t.Context(), 5)
	for _, d := range []core.Decision{denied, none} {
		if err := l.Adjust(t.Context(), d, 5); err != nil {
			t.Error(err)
		}
	}
	s := newCounting()
	counted := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}}, nil)
	same, _ := counted.Take(t.Context(), 2, k)
	if err := counted.Adjust(t.Context(), same, 2); err != nil || s.refunds != 0 {
		t.Errorf("to what was charged: %v, %d refunds", err, s.refunds)
	}
	for range 2 { // the second time it is settled
		if err := l.Adjust(t.Context(), d, 3); err != nil {
			t.Error(err)
		}
	}
	if err := l.Adjust(t.Context(), d, 0); err != nil {
		t.Error(err)
	}
	if got := left(t, l, "r", "k"); got != 2 {
		t.Errorf("%d left, want 2", got)
	}
}

// An Adjust that charged nothing may be tried again; one whose reply was lost may not.
func TestAnAdjustThatFails(t *testing.T) {
	for _, row := range []struct {
		fault error
		want  int64
	}{{fmt.Errorf("read only: %w", core.ErrNotCharged), 4}, {errors.New("no reply"), 7}} {
		s := newFaulty()
		log := new(lines)
		l := newLimiter(t, core.Config{Name: "l", Store: s, Log: log.logger(), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(9), core.PerHour(20)}}}}, nil)
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
		if n := len(log.take()); n != 1 || l.Stats().Failed != 1 {
			t.Errorf("%v: %d lines in the log and %d failures, want one each", row.fault, n, l.Stats().Failed)
		}
	}
}

// faulty is a store whose charges fail, or are noted.
type faulty struct {
	around
	fault   error
	charged []int64 // the costs
}

func newFaulty() *faulty {
	s := new(faulty)
	s.around = around{core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now})), s.charge}
	return s
}

func (s *faulty) charge(ctx context.Context, c core.Counters, b *core.Batch) error {
	if b.Op != core.OpCharge {
		return c.Do(ctx, b)
	}
	if s.fault != nil {
		return s.fault
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, it := range b.Items {
		s.charged = append(s.charged, it.Cost)
	}
	return c.Do(ctx, b)
}

// A charge is not lost because the client has gone.
func TestAdjustAfterTheContextHasEnded(t *testing.T) {
	s := newFaulty()
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(9)}, Cost: func(core.Request) (int64, error) { return 1, nil }}}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := &request{ctx: ctx}
	settled := l.Check(r)
	d, err := l.Take(ctx, 1, core.Hit{Rule: "r", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := l.Adjust(ctx, d, 3); err != nil {
		t.Error(err)
	}
	settled.SetCost(2)
	l.Settle(r, settled, core.Outcome{Canceled: true})
	if got := left(t, l, "r", "k"); got != 4 {
		t.Errorf("%d left, want 4", got)
	}
}

// Takes, settlements and refunds in any order leave what a plain count says.
func TestAdjustIsACount(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		limit := every[r.IntN(2)]
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}, newClock())
		k, count := core.Hit{Rule: "r", Key: "k"}, int64(0)
		var open []core.Decision
		for range 40 {
			n := r.Int64N(61)
			if len(open) == 0 || r.IntN(2) == 0 {
				d, err := l.Take(t.Context(), n, k)
				if want := n == 0 || count+n <= limit.Quota; err != nil || d.Allowed != want {
					t.Fatalf("seed %d: a take of %d after %d: %v, %v", seed, n, count, d, err)
				}
				if d.Allowed {
					count += n
					open = append(open, d)
				}
				continue
			}
			d := open[0]
			open = open[1:]
			if r.IntN(2) == 0 {
				n = 0
			}
			if err := l.Adjust(t.Context(), d, n); err != nil {
				t.Fatal(err)
			}
			count += n - d.Cost
			if got := left(t, l, "r", "k"); got != max(0, limit.Quota-count) {
				t.Fatalf("seed %d: %d left, and the count is %d of %d", seed, got, count, limit.Quota)
			}
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

// A stream that outlives the handler settles its request itself, if the handler has said nothing
// and Settle has changed nothing.
func TestAdjustAfterTheHandlerHasReturned(t *testing.T) {
	for name, row := range map[string]struct {
		said   int64 // by the handler; 0: nothing
		counts bool
		want   map[string]int64
	}{
		"the stream says it":         {0, true, map[string]int64{"requests": 99, "words": 50, "answers": 50}},
		"the handler has said it":    {30, true, map[string]int64{"requests": 99, "words": 70, "answers": 70}},
		"Settle has refunded a rule": {0, false, map[string]int64{"requests": 99, "words": 90, "answers": 100}},
		"both":                       {30, false, map[string]int64{"requests": 99, "words": 70, "answers": 100}},
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(core.Request) (int64, error) { return 10, nil }
			counts := func(core.Request, core.Outcome) bool { return row.counts }
			l := newLimiter(t, core.Config{Rules: []core.Rule{
				{Name: "requests", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}},
				{Name: "words", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost},
				{Name: "answers", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}, Cost: cost, Counts: counts},
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
			}
			for rule, want := range row.want {
				if got := left(t, l, rule, "k"); got != want {
					t.Errorf("%s: %d left, want %d", rule, got, want)
				}
			}
		})
	}
}
