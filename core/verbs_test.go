package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

func TestABlockedKeyIsDenied(t *testing.T) {
	for _, limits := range [][]core.Limit{{core.PerMinute(5)}, {core.PerMinute(5), core.PerHour(9)}, {{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}}} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: limits}, {Name: "s", Limits: limits}}}, c)
		k, other, s := core.Hit{Rule: "r", Key: "k"}, core.Hit{Rule: "r", Key: "other"}, core.Hit{Rule: "s", Key: "k"}
		take := func(allowed bool, hits ...core.Hit) core.Decision {
			t.Helper()
			d, err := l.Take(t.Context(), 1, hits...)
			if err != nil || d.Allowed != allowed || l.Allow(t.Context(), hits...) != allowed {
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
		if d, _ := l.Peek(t.Context(), 1, k); d.Allowed {
			t.Errorf("%v: Peek allows it", limits)
		}
		take(false, other, k)
		take(true, other)
		take(true, s)
		c.advance(10*time.Second - time.Microsecond)
		take(false, k)
		c.advance(time.Microsecond)
		take(true, k)
		block(time.Hour, k)
		take(false, k)
		block(0, k)
		c.advance(2 * time.Hour)
		block(time.Hour, k)
		if err := l.Reset(t.Context(), k); err != nil {
			t.Error(err)
		}
		take(true, k)
	}
}

func TestWhatCannotBeBlocked(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
	k := core.Hit{Rule: "r", Key: "k"}
	for _, d := range []time.Duration{-1, core.MaxWindow + 1} {
		if err := l.Block(t.Context(), d, k); !errors.Is(err, core.ErrConfig) {
			t.Errorf("%v: %v", d, err)
		}
	}
	if err := l.Block(t.Context(), 1, core.Hit{Rule: "x"}); !errors.Is(err, core.ErrUnknownRule) {
		t.Errorf("an unknown rule: %v", err)
	}
	l = newLimiter(t, core.Config{Name: "l", Store: without(core.OpBlock | core.OpResetAll), Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}}, nil)
	for name, err := range map[string]error{"Block": l.Block(t.Context(), 1, k), "ResetAll": l.ResetAll(t.Context())} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s of a store that cannot: %v", name, err)
		}
	}
}

func TestResetAllForgetsOneLimiter(t *testing.T) {
	store := core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now}))
	rules := []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "log", Limits: []core.Limit{{Quota: 5, Window: time.Hour, Algorithm: core.SlidingLog}}},
	}
	a, b := newLimiter(t, core.Config{Name: "a", Store: store, Rules: rules}, nil), newLimiter(t, core.Config{Name: "b", Store: store, Rules: rules}, nil)
	for _, l := range []*core.Limiter{a, b} {
		for i := range 1000 {
			for _, rule := range []string{"r", "log"} {
				if d, err := l.Take(t.Context(), 2, core.Hit{Rule: rule, Key: fmt.Sprint(i)}); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
			}
		}
	}
	if err := a.Block(t.Context(), time.Hour, core.Hit{Rule: "r", Key: "1"}); err != nil {
		t.Fatal(err)
	}
	if err := a.ResetAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		key := fmt.Sprint(i)
		for _, rule := range []string{"r", "log"} {
			if x, y := left(t, a, rule, key), left(t, b, rule, key); x != 5 || y != 3 {
				t.Fatalf("%s of %s: %d and %d left, want 5 and 3", key, rule, x, y)
			}
		}
	}
	if got := store.Len(); got != 2000 {
		t.Errorf("the store holds %d keys, want 2000", got)
	}
	if got := a.Stats().Allowed; got != 2000 {
		t.Errorf("the limiter has counted %d decisions, want 2000", got)
	}
	_ = store.Close()
	if err := a.ResetAll(t.Context()); !errors.Is(err, core.ErrClosed) {
		t.Errorf("of a closed store: %v", err)
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

// The response to a request that a handler denies is the hook's, also if no limiter has decided.
func TestTheDenialOfADecision(t *testing.T) {
	l := newLimiter(t, core.Config{
		Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(0)}}},
		Hooks: hooktest.Funcs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: 418} }},
	}, newClock())
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
	if got := d.Denial(&request{}).Status; err != nil || got != 418 {
		t.Errorf("%v: status %d, want the hook's", err, got)
	}
	if got := (core.Decision{}).Denial(&request{}).Status; got != 429 {
		t.Errorf("of no limiter: status %d, want 429", got)
	}
}

// Whoever calls a method of the Limiter learns of the store's error.
func TestEachMethodReturnsTheStoresError(t *testing.T) {
	k := core.Hit{Rule: "r", Key: "k"}
	for name, call := range map[string]func(ctx context.Context, l *core.Limiter, d core.Decision) error{
		"Take": func(ctx context.Context, l *core.Limiter, _ core.Decision) error {
			_, err := l.Take(ctx, 1, k)
			return err
		},
		"Peek": func(ctx context.Context, l *core.Limiter, _ core.Decision) error {
			_, err := l.Peek(ctx, 1, k)
			return err
		},
		"Wait": func(ctx context.Context, l *core.Limiter, _ core.Decision) error {
			_, err := l.Wait(ctx, 1, k)
			return err
		},
		"Grant": func(ctx context.Context, l *core.Limiter, _ core.Decision) error {
			_, err := l.Grant(ctx, 1, k)
			return err
		},
		"Adjust":      func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 3) },
		"Adjust to 0": func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 0) },
		"Block":       func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Block(ctx, time.Minute, k) },
		"Reset":       func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Reset(ctx, k) },
		"ResetAll":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.ResetAll(ctx) },
	} {
		var fault error
		store := &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
			return errors.Join(c.Do(ctx, b), fault)
		}}
		l := newLimiter(t, core.Config{Store: store, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(9)}}}}, nil)
		d, err := l.Take(t.Context(), 1, k)
		if err != nil {
			t.Fatal(err)
		}
		if err := call(t.Context(), l, d); err != nil {
			t.Errorf("%s: %v without an error of the store", name, err)
		}
		if d, err = l.Take(t.Context(), 1, k); err != nil { // the first one may have been settled
			t.Fatal(err)
		}
		fault = errors.New("no counters today")
		if err := call(t.Context(), l, d); !errors.Is(err, fault) {
			t.Errorf("%s returns %v, want the store's error", name, err)
		}
	}
}

// A grant gives each limit of the rule its hits back, and shows what is left.
func TestAGrantGivesHitsBack(t *testing.T) {
	for _, limit := range every {
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit, core.PerMinute(120)}}}}, newClock())
		k := core.Hit{Rule: "r", Key: "k"}
		if d, err := l.Take(t.Context(), 100, k); err != nil || !d.Allowed {
			t.Fatal(d, err)
		}
		for _, step := range []struct {
			n    int64
			left []int64
		}{{50, []int64{50, 70}}, {1, []int64{51, 71}}, {core.MaxQuota, []int64{100, 120}}} {
			d, err := l.Grant(t.Context(), step.n, k)
			var got []int64
			for s := range d.Limits() {
				got = append(got, s.Remaining)
			}
			if err != nil || !d.Allowed || d.Cost != 0 || d.Reason != core.ReasonWithinLimits || !slices.Equal(got, step.left) {
				t.Errorf("%v: after %d: %v, %v, %d left; want %d", limit, step.n, d, err, got, step.left)
			}
			if err := l.Adjust(t.Context(), d, 0); err != nil || left(t, l, "r", "k") != d.Remaining {
				t.Errorf("%v: the decision of a grant was refunded: %v", limit, err)
			}
		}
		if got := l.Stats(); got.Allowed != 1 {
			t.Errorf("a grant was counted as a decision: %+v", got)
		}
	}
}

func TestWhatCannotBeGranted(t *testing.T) {
	rules := []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerMinute(5)}},
		{Name: "login", Limits: []core.Limit{core.PerMinute(9), {Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour}}}},
		{Name: "locked", Limits: []core.Limit{{Quota: 2, Window: time.Hour, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Minute, Factor: 2, Max: time.Hour}}}},
	}
	l := newLimiter(t, core.Config{Rules: rules}, newClock())
	_, _ = l.Take(t.Context(), 5, core.Hit{Rule: "r", Key: "k"})
	for _, row := range []struct {
		n    int64
		rule string
		want error
		says string
	}{
		{0, "r", core.ErrConfig, "granting 0 hits: must be from 1 to 2147483647"},
		{-1, "r", core.ErrConfig, "granting -1 hits"},
		{core.MaxQuota + 1, "r", core.ErrConfig, "granting 2147483648 hits"},
		{1, "x", core.ErrUnknownRule, `rule "x"`},
		{1, "login", core.ErrConfig, "Reset ends its wait"},
		{1, "locked", core.ErrConfig, "Reset ends its wait"},
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
	l = newLimiter(t, core.Config{Name: "l", Store: without(core.OpGrant), Rules: rules[:1]}, nil)
	if _, err := l.Grant(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("of a store that cannot: %v", err)
	}
}

// Nothing is lost if the caller has gone, and a key may be as long as it likes.
func TestAGrantToAnEndedContext(t *testing.T) {
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(5)}}}}, newClock())
	k := core.Hit{Rule: "r", Key: strings.Repeat("k", 100_000), Extra: "x"}
	_, _ = l.Take(t.Context(), 5, k)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := l.Grant(ctx, 2, k, k); err != nil || d.Remaining != 2 {
		t.Errorf("%v, %v", d, err)
	}
}

// Windows of the calendar and quotas of one request.
func TestAGrantInOddWindows(t *testing.T) {
	berlin := core.Must(time.LoadLocation("Europe/Berlin"))
	for _, limit := range []core.Limit{core.PerMonth(10).In(berlin), core.PerHour(10)} {
		c := newClock()
		l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}, c)
		k := core.Hit{Rule: "r", Key: "k"}
		_, _ = l.Take(t.Context(), 9, k)
		if d, err := l.Grant(t.Context(), 4, k); err != nil || d.Remaining != 5 {
			t.Errorf("%v: %v, %v", limit, d, err)
		}
		k.Quotas = []int64{20}
		if d, err := l.Grant(t.Context(), 1, k); err != nil || d.Remaining != 16 {
			t.Errorf("%v, a quota of 20: %v, %v", limit, d, err)
		}
		k.Quotas = []int64{core.Unlimited}
		if d, err := l.Grant(t.Context(), 1, k); err != nil || d.Remaining != core.Unlimited {
			t.Errorf("%v, unlimited: %v, %v", limit, d, err)
		}
		if got := left(t, l, "r", "k"); got != 7 {
			t.Errorf("%v: %d left, want 7", limit, got)
		}
	}
}

// A request that waits gets its turn when hits are granted.
func TestAGrantEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := core.Must(core.New(core.Config{MaxWait: time.Hour, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerHour(2)}}}}))
		k := core.Hit{Rule: "r", Key: "k"}
		_, _ = l.Take(t.Context(), 2, k)
		began := time.Now()
		done := make(chan time.Duration)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour)
			defer cancel()
			if d, err := l.Wait(ctx, 1, k); err != nil || !d.Allowed {
				t.Errorf("%v, %v", d, err)
			}
			done <- time.Since(began)
		}()
		synctest.Wait()
		if _, err := l.Grant(t.Context(), 1, k); err != nil {
			t.Error(err)
		}
		if waited := <-done; waited != 0 {
			t.Errorf("it waited for %v more", waited)
		}
	})
}

// A grant is not lost because the operator's browser has gone.
func TestAGrantAfterTheContextHasEnded(t *testing.T) {
	s := &around{core.Must(core.NewMemory(core.MemoryConfig{Clock: newClock().Now})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
		if err := ctx.Err(); err != nil && b.Op == core.OpGrant {
			return err
		}
		return c.Do(ctx, b)
	}}
	l := newLimiter(t, core.Config{Name: "api", Store: s, Rules: []core.Rule{{Name: "r", Limits: []core.Limit{core.PerMinute(9)}}}}, nil)
	k := core.Hit{Rule: "r", Key: "k"}
	_, _ = l.Take(t.Context(), 9, k)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := l.Grant(ctx, 4, k); err != nil || d.Remaining != 4 {
		t.Errorf("%v, %v", d, err)
	}
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
