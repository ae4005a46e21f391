package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
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
	if d, err := l.Take(ctx, 1); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule {
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
	if _, err := l.Take(ctx, -1, k); !errors.Is(err, core.ErrNegativeCost) {
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
		if d, err := l.Peek(ctx, 5, k); err != nil || !d.Allowed || d.Remaining != 5 {
			t.Fatalf("%v, %v", d, err)
		}
	}
	if d, _ := l.Peek(ctx, 6, k); d.Allowed {
		t.Error("a peek above the quota is allowed")
	}
}

func TestRefundAndReset(t *testing.T) {
	c := newClock()
	l, ctx := twoRules(t, c), t.Context()
	ip, user := core.Hit{Rule: "ip", Key: "k"}, core.Hit{Rule: "user", Key: strings.Repeat("long", 100)}
	one, _ := l.Take(ctx, 2, ip)
	both, _ := l.Take(ctx, 3, ip, user)
	denied, _ := l.Take(ctx, 3, ip, user)
	peeked, _ := l.Peek(ctx, 1, user)
	for _, step := range []struct {
		d        core.Decision
		ip, user int64
	}{{denied, 0, 0}, {peeked, 0, 0}, {core.Decision{}, 0, 0}, {both, 3, 3}, {both, 3, 3}, {one, 5, 3}} {
		if err := l.Adjust(ctx, step.d, 0); err != nil {
			t.Fatal(err)
		}
		if i, u := left(t, l, "ip", ip.Key), left(t, l, "user", user.Key); i != step.ip || u != step.user {
			t.Fatalf("after the refund of %v: %d and %d left, want %d and %d", step.d, i, u, step.ip, step.user)
		}
	}
	old, _ := l.Take(ctx, 5, ip)
	c.advance(3 * time.Minute)
	_, _ = l.Take(ctx, 2, ip)
	if err := l.Adjust(ctx, old, 0); err != nil || left(t, l, "ip", "k") != 3 {
		t.Errorf("a refund into a window that has gone: %v, %d left", err, left(t, l, "ip", "k"))
	}
	if err := l.Reset(ctx, ip, user); err != nil || left(t, l, "ip", "k") != 5 {
		t.Errorf("reset: %v, %d left", err, left(t, l, "ip", "k"))
	}
}

func TestTheStoresErrorIsADecision(t *testing.T) {
	s := newCounting()
	s.fault = errFault
	l := newLimiter(t, core.Config{Name: "l", Store: s, Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: []core.Limit{core.PerMinute(1)}}}}, nil)
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
	if got := l.Stats(); got.Failed != 2 || got.Allowed != 1 || got.Degraded != 1 {
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
		takes++
		b.Allowed = takes > 1
		for i := range b.Items {
			b.Items[i].Results[0] = core.Result{Allowed: b.Allowed, Remaining: 1}
		}
		if !b.Allowed {
			b.Items[0].Unknown = true
			b.Items[0].Results[0].RetryAfter = core.Never // means nothing
			b.Items[1].Results[0].RetryAfter = time.Second
		}
		return nil
	})}, nil)
	for take, want := range []int{1, 2, 2} {
		d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r0"}, core.Hit{Rule: "r1"})
		if err != nil || d.Allowed != (take > 0) {
			t.Fatalf("take %d: %v, %v", take, d, err)
		}
		n := 0
		for range d.Limits() {
			n++
		}
		if n != want || take == 0 && (d.Rule() != "r1" || d.RetryAfter != time.Second) {
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
		s.fault = errFault
		if l.Allow(t.Context(), core.Hit{Rule: "user", Key: "alice"}) {
			t.Error("a store that fails allows")
		}
		wantLines(t, log, `level=ERROR msg="floodgate: the store failed" limiter=api operation=take rule=user error="dial tcp 10.1.2.3:6379: connection refused"`)
		if got := l.Stats().Failed; got != 3 {
			t.Errorf("%d failures are counted, want 3", got)
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

func ExampleLimiter_Reset() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ctx, k := context.Background(), core.Hit{Rule: "r", Key: "k"}
	_, _ = limiter.Take(ctx, 1, k)
	_ = limiter.Reset(ctx, k)
	d, _ := limiter.Take(ctx, 1, k)
	fmt.Println(d.Allowed)
	// Output: true
}

func TestABlockedKeyIsDenied(t *testing.T) {
	for _, limits := range [][]core.Limit{{core.PerMinute(5)}, {core.PerMinute(5), core.PerHour(9)}, {{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}}} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}, {Name: "s", Limits: limits}}}, c)
		k, other, s := core.Hit{Rule: "r", Key: "k"}, core.Hit{Rule: "r", Key: "other"}, core.Hit{Rule: "s", Key: "k"}
		take := func(allowed bool, hits ...core.Hit) core.Decision {
			t.Helper()
			d, err := l.Take(t.Context(), 1, hits...)
			if seen, _ := l.Peek(t.Context(), 1, hits...); err != nil || d.Allowed != allowed || seen.Allowed != allowed {
				t.Errorf("%v: %v, %v", limits, d, err)
			}
			return d
		}
		block := func(d time.Duration, hits ...core.Hit) {
			t.Helper()
			if err := l.Block(t.Context(), d, hits...); err != nil {
				t.Error(err)
			}
		}
		take(true, k)
		block(10*time.Second, k)
		if d := take(false, k); d.RetryAfter != 10*time.Second || d.Remaining != 0 || d.Reason != core.ReasonOverLimit {
			t.Errorf("%v: %d left, wait %v, %v", limits, d.Remaining, d.RetryAfter, d.Reason)
		}
		for _, hits := range [][]core.Hit{{k}, {k, other}} { // a cost of 0 is always allowed
			if d, err := l.Peek(t.Context(), 0, hits...); err != nil || !d.Allowed || d.RetryAfter != 0 {
				t.Errorf("%v: a look: %v, %v", limits, d, err)
			}
		}
		take(false, other, k)
		take(true, other)
		take(true, s)
		c.advance(10*time.Second - time.Microsecond)
		take(false, k)
		c.advance(time.Microsecond)
		take(true, k)
		block(core.MaxWindow, k)
		take(false, k)
		block(0, k)
		take(true, k)
		block(time.Hour, k)
		reset(t, l, k)
		take(true, k)
	}
}

// A block that is over before the window does not shorten what the window says.
func TestABlockShorterThanTheWindow(t *testing.T) {
	l := newLimiter(t, oneRule(bucket(2, time.Minute)), newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	if d, err := l.Take(t.Context(), 2, k); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if err := l.Block(t.Context(), time.Second, k); err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(t.Context(), 1, k)
	if err != nil || d.RetryAfter != 30*time.Second || d.ResetAfter != time.Minute || d.MoreAfter != 30*time.Second {
		t.Errorf("%v, %v: waits %v, %v and %v", d, err, d.RetryAfter, d.ResetAfter, d.MoreAfter)
	}
}

func TestWhatCannotBeBlocked(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerMinute(5)), newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	for _, d := range []time.Duration{-1, core.MaxWindow + 1} {
		if err := l.Block(t.Context(), d, k); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: %v", d, err)
		}
	}
	config := oneRule(core.PerMinute(5))
	config.Store = aroundMemory(func(context.Context, core.Counters, *core.Batch) error { return core.ErrUnsupported })
	l = newLimiter(t, config, nil)
	_, granting := l.Grant(t.Context(), 1, k)
	for name, err := range map[string]error{"Block": l.Block(t.Context(), 1, k), "ResetAll": l.ResetAll(t.Context()), "Grant": granting} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s of a store that cannot: %v", name, err)
		}
	}
}

// A grant gives each limit of the rule its hits back, and shows what is left.
func TestAGrantGivesHitsBack(t *testing.T) {
	for _, limit := range append(every, core.PerMonth(100).In(zoneOf(t, "Europe/Berlin"))) {
		l := newLimiter(t, oneRule(limit, core.PerMinute(120)), newClock())
		k := core.Hit{Rule: "r", Key: "k"}
		if d, err := l.Take(t.Context(), 100, k); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, step := range []struct {
			n      int64
			quotas []int64
			left   []int64
		}{
			{50, nil, []int64{50, 70}},
			{1, nil, []int64{51, 71}},
			{1, []int64{200, core.Unlimited}, []int64{152, core.Unlimited}},
			{core.MaxQuota, nil, []int64{100, 120}},
		} {
			k.Quotas = step.quotas
			d, err := l.Grant(t.Context(), step.n, k, k)
			var got []int64
			for s := range d.Limits() {
				got = append(got, s.Remaining)
			}
			if err != nil || !d.Allowed || d.Cost != 0 || d.Reason != core.ReasonWithinLimits || !slices.Equal(got, step.left) {
				t.Errorf("%v: after %d: %v, %v, %d left; want %d", limit, step.n, d, err, got, step.left)
			}
			if err := l.Adjust(t.Context(), d, 0); err != nil || l.Stats().Allowed != 1 {
				t.Errorf("%v: the decision of a grant was refunded or counted: %v", limit, err)
			}
		}
	}
}

func TestWhatCannotBeGranted(t *testing.T) {
	locked := fixed(2, time.Hour)
	locked.Lockout = core.Lockout{First: time.Minute}
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "login", Limits: []core.Limit{core.PerMinute(9), locked}},
	}}, newClock())
	_, _ = l.Take(t.Context(), 5, core.Hit{Rule: "r", Key: "k"})
	for _, row := range []struct {
		n    int64
		rule string
		want error
		says string
	}{
		{0, "r", core.ErrConfig, "granting 0 hits: must be from 1 to 2147483647"},
		{core.MaxQuota + 1, "r", core.ErrConfig, "granting 2147483648 hits"},
		{1, "x", core.ErrUnknownRule, `rule "x"`},
		{1, "login", core.ErrConfig, "Lockout"},
	} {
		d, err := l.Grant(t.Context(), row.n, core.Hit{Rule: row.rule, Key: "k"}, core.Hit{Rule: "r", Key: "k"})
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) || d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, row.want) {
			t.Errorf("%d of %s: %v, %v", row.n, row.rule, d, err)
		}
	}
	if got := left(t, l, "r", "k"); got != 0 {
		t.Errorf("%d left after grants that failed", got)
	}
	if d, err := l.Grant(t.Context(), 1); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule {
		t.Errorf("without a hit: %v, %v", d, err)
	}
}

func TestResetAllForgetsOneLimiter(t *testing.T) {
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))
	rules := numbered(2)
	rules[1].Limits = []core.Limit{{Quota: 10, Window: time.Hour, Algorithm: core.SlidingLog}}
	a, b := newLimiter(t, core.Config{Name: "a", Store: store, Rules: rules}, nil), newLimiter(t, core.Config{Name: "b", Store: store, Rules: rules}, nil)
	const keys = 500
	for i := range keys {
		for _, l := range []*core.Limiter{a, b} {
			takeOf(t, l, "r0", fmt.Sprint(i))
			takeOf(t, l, "r1", fmt.Sprint(i))
		}
	}
	if err := a.Block(t.Context(), time.Hour, core.Hit{Rule: "r0", Key: "1"}); err != nil {
		t.Fatal(err)
	}
	if err := a.ResetAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		for _, rule := range []string{"r0", "r1"} {
			if x, y := left(t, a, rule, fmt.Sprint(i)), left(t, b, rule, fmt.Sprint(i)); x != 10 || y != 9 {
				t.Fatalf("%d of %s: %d and %d left, want 10 and 9", i, rule, x, y)
			}
		}
	}
	if n, s := store.Len(), a.Stats(); n != 2*keys || s.Allowed != 2*keys {
		t.Errorf("the store holds %d keys, want %d; %+v", n, 2*keys, s)
	}
}

// Whoever calls a method of the Limiter learns of the store's error.
func TestEachMethodReturnsTheStoresError(t *testing.T) {
	k := core.Hit{Rule: "r", Key: "k"}
	var fault error
	config := oneRule(core.PerMinute(90))
	config.Log = new(lines).logger()
	config.Store = aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
		return errors.Join(c.Do(ctx, b), fault)
	})
	l, ctx := newLimiter(t, config, nil), t.Context()
	for name, call := range map[string]func(d core.Decision) error{
		"Take":        func(core.Decision) error { _, err := l.Take(ctx, 1, k); return err },
		"Peek":        func(core.Decision) error { _, err := l.Peek(ctx, 1, k); return err },
		"Wait":        func(core.Decision) error { _, err := l.Wait(ctx, 1, k); return err },
		"Grant":       func(core.Decision) error { _, err := l.Grant(ctx, 1, k); return err },
		"Adjust":      func(d core.Decision) error { return l.Adjust(ctx, d, 3) },
		"Adjust to 0": func(d core.Decision) error { return l.Adjust(ctx, d, 0) },
		"Block":       func(core.Decision) error { return l.Block(ctx, 0, k) },
		"Reset":       func(core.Decision) error { return l.Reset(ctx, k) },
		"ResetAll":    func(core.Decision) error { return l.ResetAll(ctx) },
	} {
		for _, want := range []error{nil, errFault} {
			d, err := l.Take(ctx, 1, k)
			if err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			fault = want
			if err := call(d); !errors.Is(err, want) || (err != nil) != (want != nil) {
				t.Errorf("%s returns %v, want %v", name, err, want)
			}
			fault = nil
		}
	}
}

func ExampleLimiter_Block() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Limits: []core.Limit{core.PerMinute(100)}}}}))
	ctx, address := context.Background(), core.Hit{Rule: "ip", Key: "192.0.2.7"}
	_ = limiter.Block(ctx, time.Hour, address)
	fmt.Println(limiter.Allow(ctx, address))
	_ = limiter.Block(ctx, 0, address)
	fmt.Println(limiter.Allow(ctx, address))
	// Output:
	// false
	// true
}

func ExampleLimiter_Grant() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "api", Limits: []core.Limit{core.PerHour(100)}}}}))
	ctx, acme := context.Background(), core.Hit{Rule: "api", Key: "acme"}
	_, _ = limiter.Take(ctx, 100, acme)
	fmt.Println(limiter.Allow(ctx, acme))
	d, err := limiter.Grant(ctx, 50, acme)
	fmt.Println(d.Remaining, err)
	// Output:
	// false
	// 50 <nil>
}

func ExampleLimiter_ResetAll() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "ip", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ctx, address := context.Background(), core.Hit{Rule: "ip", Key: "192.0.2.7"}
	fmt.Println(limiter.Allow(ctx, address), limiter.Allow(ctx, address))
	_ = limiter.ResetAll(ctx)
	fmt.Println(limiter.Allow(ctx, address))
	// Output:
	// true false
	// true
}
