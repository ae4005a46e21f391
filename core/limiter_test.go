package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func ExampleNew() {
	limiter, err := core.New(core.Config{
		Name:  "jobs",
		Rules: []core.Rule{{Name: "tenant", Limits: []core.Limit{core.PerMinute(2)}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, err := limiter.Take(context.Background(), 1, core.Hit{Rule: "tenant", Key: "42"})
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

func twoRules(t testing.TB, c *clock) *core.Limiter {
	return newLimiter(t, core.Config{Name: "two", Rules: []core.Rule{
		{Name: "ip", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "user", Limits: []core.Limit{core.PerMinute(3), core.PerHour(4)}},
	}}, c)
}

func TestTakeChargesAllOrNone(t *testing.T) {
	l, ctx := twoRules(t, newClock()), t.Context()
	ip, user := core.Hit{Rule: "ip", Key: "a"}, core.Hit{Rule: "user", Key: "u"}
	for i := range 5 {
		d, err := l.Take(ctx, 1, ip, user)
		if err != nil || d.Allowed != (i < 3) {
			t.Fatalf("take %d: %v, %v", i+1, d, err)
		}
	}
	if got := left(t, l, "ip", "a"); got != 2 {
		t.Errorf("%d left of the address, want 2: denied requests drain it", got)
	}
	if d, err := l.Take(ctx, 2, ip, ip, ip); err != nil || !d.Allowed || left(t, l, "ip", "a") != 0 {
		t.Errorf("a counter named three times: %v, %v, %d left", d, err, left(t, l, "ip", "a"))
	}
	if d, err := l.Take(ctx, 7); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule || d.Cost != 7 {
		t.Errorf("a take of nothing: %v, %v", d, err)
	}
}

func TestOddCosts(t *testing.T) {
	l, ctx, k := twoRules(t, newClock()), t.Context(), core.Hit{Rule: "ip", Key: "k"}
	for _, row := range []struct {
		cost    int64
		allowed bool
	}{{0, true}, {6, false}, {math.MaxInt64, false}, {math.MaxInt64 - 1, false}, {5, true}, {1, false}, {0, true}} {
		d, err := l.Take(ctx, row.cost, k)
		if err != nil || d.Allowed != row.allowed {
			t.Errorf("cost %d: %v, %v", row.cost, d, err)
		}
		if row.cost > 5 && d.RetryAfter != core.Never {
			t.Errorf("cost %d: RetryAfter %v", row.cost, d.RetryAfter)
		}
	}
	if _, err := l.Take(ctx, -1, k); !errors.Is(err, core.ErrConfig) {
		t.Errorf("cost -1: %v", err)
	}
}

// Without hits, nothing is asked of the store.
func TestNoHitsAreNoOperation(t *testing.T) {
	s := newCounting()
	s.fault = errFault
	config := oneRule(core.PerMinute(1))
	config.Store = s
	l := newLimiter(t, config, nil)
	d, err := l.Take(t.Context(), 1)
	if err = errors.Join(err, l.Reset(t.Context()), l.Block(t.Context(), time.Hour)); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule || !l.Allow(t.Context()) || s.takes+s.resets != 0 {
		t.Errorf("%v, %v, %d operations", d, err, s.takes+s.resets)
	}
}

// A take of cost 0 charges nothing: it begins no window, and keeps no key.
func TestCost0BeginsNoWindow(t *testing.T) {
	window := fixed(5, time.Minute)
	for _, limits := range [][]core.Limit{{window}, {window, core.PerHour(9)}} {
		c, config := newClock(), oneRule(limits...)
		store := core.Must(core.NewMemory(core.MemoryConfig{Clock: c.Now}))
		config.Store = store
		l := newLimiter(t, config, nil)
		take := func(cost int64) (first core.LimitStatus) {
			t.Helper()
			d, err := l.Take(t.Context(), cost, core.Hit{Rule: "r", Key: "k"})
			if err != nil || !d.Allowed {
				t.Fatalf("%v: %v, %v", limits, d, err)
			}
			for first = range d.Limits() {
				break
			}
			return first
		}
		if take(0); store.Len() != 0 {
			t.Errorf("%v: %d keys", limits, store.Len())
		}
		for range 2 { // the second time, the key is known
			take(0)
			c.advance(45 * time.Second)
			if s := take(1); s.ResetAfter != time.Minute || s.Remaining != 4 {
				t.Errorf("%v: reset after %v and %d left, want 1m0s and 4", limits, s.ResetAfter, s.Remaining)
			}
			c.advance(2 * time.Minute)
		}
	}
}

// A counter that is named several times is charged once, however many hits there are and
// wherever the same counter is named again. Counters that differ in one part are different.
func TestACounterThatIsNamedAgainIsChargedOnce(t *testing.T) {
	for _, n := range []int{2, 3, 33, 500} {
		l := newLimiter(t, core.Config{Rules: numbered(2)}, nil)
		hits := make([]core.Hit, n)
		for i := range hits {
			hits[i] = core.Hit{Rule: "r" + strconv.Itoa(i%2), Key: strings.Repeat("x", i/8)}
			if i%4 > 1 {
				hits[i].Extra = "extra"
			}
		}
		hits[n-1] = hits[0]
		if d, err := l.Take(t.Context(), 3, hits...); err != nil || !d.Allowed {
			t.Fatalf("%d hits: %v, %v", n, d, err)
		}
		for i, h := range hits {
			if d, err := l.Peek(t.Context(), 1, h); err != nil || d.Remaining != 7 {
				t.Fatalf("%d hits: hit %d has %d left (%v), want 7", n, i, d.Remaining, err)
			}
		}
	}
}

// A hit finds its rule by the name, however many rules there are, and none by a name that no rule has.
func TestHitsFindTheirRules(t *testing.T) {
	for _, n := range []int{1, 8, 9, 40} {
		config := core.Config{Name: "l", Rules: numbered(n)}
		for i := range n {
			config.Rules[i].Limits = []core.Limit{core.PerHour(int64(i) + 1)}
		}
		l := newLimiter(t, config, newClock())
		for _, name := range []string{"", "r", "R0", "r40", "r00"} {
			hit := core.Hit{Rule: name, Key: "k"}
			d, err := l.Take(t.Context(), 1, hit)
			if d.Allowed {
				t.Errorf("%d rules, %q: %v", n, name, d)
			}
			_, peekErr := l.Peek(t.Context(), 1, hit)
			for _, err := range []error{err, peekErr, l.Reset(t.Context(), hit), l.Block(t.Context(), 1, hit)} {
				if !errors.Is(err, core.ErrUnknownRule) || !strings.Contains(err.Error(), fmt.Sprintf(`limiter "l", rule %q`, name)) {
					t.Errorf("%d rules, %q: %v", n, name, err)
				}
			}
		}
		for i := range n {
			d, err := l.Take(t.Context(), 1, core.Hit{Rule: fmt.Sprint("r", i), Key: "k"})
			if err != nil || d.Limit().Quota != int64(i)+1 || d.Remaining != int64(i) {
				t.Errorf("%d rules, r%d: %v, %v", n, i, d, err)
			}
		}
	}
}

func TestPeekChargesNothing(t *testing.T) {
	l, ctx, k := twoRules(t, newClock()), t.Context(), core.Hit{Rule: "ip", Key: "k"}
	for range 3 {
		if d, err := l.Peek(ctx, 5, k); err != nil || !d.Allowed || d.Remaining != 5 || d.Cost != 5 {
			t.Fatalf("%v, %v", d, err)
		}
	}
	if d, _ := l.Peek(ctx, 6, k); d.Allowed {
		t.Error("a peek above the quota is allowed")
	}
}

func TestTheStoresErrorIsADecision(t *testing.T) {
	s := newCounting()
	s.fault = errFault
	l := newLimiter(t, core.Config{Name: "l", Store: s, MaxWait: time.Second, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r"})
	if !errors.Is(err, errFault) || d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, errFault) {
		t.Errorf("%v, %v", d, err)
	}
	if d := l.Check(&request{}); d.Allowed || !errors.Is(d.Err, errFault) || strings.Contains(d.String(), "10.1.2.3") {
		t.Errorf("%v", d)
	}
	s.fault, s.degraded = nil, true
	if d := l.Check(&request{}); !d.Allowed || !d.Degraded || !strings.Contains(d.String(), "without the shared counters") {
		t.Errorf("%v", d)
	}
	if got := hooktest.Count(l); got.Failed != 2 || got.Allowed != 1 || got.Degraded != 1 {
		t.Errorf("%+v", got)
	}
	s.degraded = false
	if d := l.Check(&request{}); d.Allowed || d.Degraded {
		t.Errorf("after the store has come back: %v", d)
	}
}

// A store may deny a batch for one item without a look at the others: these decide nothing.
func TestWhatTheStoreHasNotLookedAt(t *testing.T) {
	takes := 0
	l := newLimiter(t, core.Config{Rules: numbered(2), Store: aroundMemory(func(_ context.Context, _ core.Counters, b *core.Batch) error {
		b.Allowed = takes > 1
		for i := range b.Items {
			b.Items[i].Results[0] = core.Result{Allowed: b.Allowed, Remaining: 1}
		}
		if !b.Allowed {
			b.Items[takes].Unknown = true
			b.Items[takes].Results[0].RetryAfter = core.Never // means nothing
			b.Items[1-takes].Results[0].RetryAfter = time.Second
		}
		takes++
		return nil
	})}, nil)
	for take, want := range []int{1, 1, 2, 2} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r0"}, core.Hit{Rule: "r1"})
		if err != nil || d.Allowed != (take > 1) {
			t.Fatalf("take %d: %v, %v", take, d, err)
		}
		n := 0
		for range d.Limits() {
			n++
		}
		if n != want || take < 2 && (d.Rule() != fmt.Sprint("r", 1-take) || d.RetryAfter != time.Second) {
			t.Errorf("take %d: %d limits, want %d; decided by %v", take, n, want, d)
		}
	}
}

// What keeps Allow from deciding is logged, as nobody else hears of it.
func TestAllowDeniesAndLogsIfItCannotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s := &lines{}, newCounting()
		l := newLimiter(t, core.Config{Name: "api", Store: s, Log: log.logger(), DryRun: true, Rules: []core.Rule{
			{Name: "user", Limits: []core.Limit{core.PerMinute(100)}},
		}}, nil)
		for range 2 { // one line a second
			if l.Allow(t.Context(), core.Hit{Rule: "usr", Key: "alice"}) {
				t.Error("a rule that does not exist allows")
			}
		}
		wantLines(t, log, `level=ERROR msg="floodgate: a call failed" limiter=api operation=allow error="limiter \"api\", rule \"usr\": floodgate: unknown rule"`)
		time.Sleep(time.Second)
		l.Allow(t.Context(), core.Hit{Rule: "user", Quotas: []int64{-1}})
		wantLines(t, log, `level=ERROR msg="floodgate: a call failed" limiter=api operation=allow error="floodgate: configuration: limiter \"api\", rule \"user\": Quotas[0]: -1: must be from 0 to 2147483647 for sliding_window, or core.Unlimited" suppressed=1`)
		s.fault = errFault
		if l.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
			t.Error("a store that fails allows")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		if got := hooktest.Count(l).Failed; got != 4 {
			t.Errorf("%d failures are counted, want 4", got)
		}
	})
}

func ExampleLimiter_Take() {
	limiter := core.Must(core.New(core.Config{
		Rules: []core.Rule{
			{Name: "tenant", Limits: []core.Limit{core.PerMinute(100)}},
			{Name: "user", Limits: []core.Limit{core.PerMinute(10)}},
		},
	}))
	// A job that costs 8 hits, of a tenant and of a user.
	hits := []core.Hit{{Rule: "tenant", Key: "t1"}, {Rule: "user", Key: "alice"}}
	for range 2 {
		d, err := limiter.Take(context.Background(), 8, hits...)
		fmt.Println(d.Allowed, d.Rule(), d.Remaining, err)
	}
	// Output:
	// true user 2 <nil>
	// false user 2 <nil>
}

func ExampleLimiter_Peek() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(10)}}}}))
	d, _ := limiter.Peek(context.Background(), 11, core.Hit{Rule: "r", Key: "k"})
	fmt.Println(d.Allowed, d.Remaining, d.RetryAfter == core.Never)
	// Output: false 10 true
}
