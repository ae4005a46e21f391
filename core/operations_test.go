package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

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

// A block denies every quota, for a microsecond at least.
func TestABlockOfAnUnlimitedKey(t *testing.T) {
	l := newLimiter(t, oneRule(core.PerHour(5)), newClock())
	k := core.Hit{Rule: "r", Key: "k", Quotas: []int64{core.Unlimited}}
	if err := l.Block(t.Context(), 1, k); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Take(t.Context(), 1, k); err != nil || d.Allowed || d.Remaining != 0 || d.ResetAfter != time.Microsecond || d.MoreAfter != time.Microsecond || d.RetryAfter != time.Microsecond {
		t.Errorf("%v, %v: all in %v, more in %v", d, err, d.ResetAfter, d.MoreAfter)
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
	for name, err := range map[string]error{"block": l.Block(t.Context(), 1, k), "reset all": l.ResetAll(t.Context()), "grant": granting} {
		if !errors.Is(err, core.ErrUnsupported) || !strings.HasPrefix(err.Error(), `limiter "default": `+name+": ") {
			t.Errorf("%s of a store that cannot: %v", name, err)
		}
	}
}

// A grant gives each limit of the rule its hits back, and shows what is left.
func TestAGrantGivesHitsBack(t *testing.T) {
	for _, limit := range append(every, core.PerMonth(100).In(zoneOf(t, "Europe/Berlin"))) {
		config := oneRule(limit, core.PerMinute(120))
		config.Headers = core.HeadersXEpoch
		l := newLimiter(t, config, newClock())
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
				if got = append(got, s.Remaining); !s.Allowed || s.RetryAfter != 0 {
					t.Errorf("%v: after %d: %+v", limit, step.n, s)
				}
			}
			if err != nil || !d.Allowed || d.Cost != 0 || d.Reason != core.ReasonWithinLimits || !slices.Equal(got, step.left) {
				t.Errorf("%v: after %d: %v, %v, %d left; want %d", limit, step.n, d, err, got, step.left)
			}
			if text := headerText(d); step.quotas == nil && !strings.Contains(text, "X-Ratelimit-Reset: 176") {
				t.Errorf("%v: a decision without a time: %s", limit, text)
			}
			if err := l.Adjust(t.Context(), d, 0); err != nil || hooktest.Count(l).Allowed != 1 {
				t.Errorf("%v: the decision of a grant was refunded or counted: %v", limit, err)
			}
		}
	}
}

func TestWhatCannotBeGranted(t *testing.T) {
	locked := core.Limit{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute}}
	l := newLimiter(t, core.Config{Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "login", Limits: []core.Limit{locked, core.PerMinute(9)}},
		{Name: "late", Limits: []core.Limit{core.PerDay(9), locked}},
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
		{1, "login", core.ErrConfig, `limiter "default", rule "login", limit "login-1h": granting hits: it has a Lockout: Reset ends its wait`},
		{1, "late", core.ErrConfig, `limit "late-1h": granting hits: it has a Lockout`},
	} {
		d, err := l.Grant(t.Context(), row.n, core.Hit{Rule: row.rule, Key: "k"}, core.Hit{Rule: "r", Key: "k"})
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) || d.Allowed || d.Reason != core.ReasonFailed || !errors.Is(d.Err, row.want) || d.Limiter() != "default" || d.Rule() != "" {
			t.Errorf("%d of %s: %v, %v", row.n, row.rule, d, err)
		}
	}
	if got := left(t, l, "r", "k"); got != 0 {
		t.Errorf("%d left after grants that failed", got)
	}
	if d, err := l.Grant(t.Context(), 1); err != nil || !d.Allowed || d.Reason != core.ReasonNoRule || d.Cost != 0 {
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
	if n, s := store.Len(), hooktest.Count(a); n != 2*keys || s.Allowed != 2*keys {
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

func ExampleLimiter_Reset() {
	limiter := core.Must(core.New(core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(1)}}}}))
	ctx, k := context.Background(), core.Hit{Rule: "r", Key: "k"}
	_, _ = limiter.Take(ctx, 1, k)
	_ = limiter.Reset(ctx, k)
	d, _ := limiter.Take(ctx, 1, k)
	fmt.Println(d.Allowed)
	// Output: true
}
