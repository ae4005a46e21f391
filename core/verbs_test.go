package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
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
		Hooks: core.HookFuncs{OnDisallowedFunc: func(core.Request, core.Decision) core.Denial { return core.Denial{Status: 418} }},
	}, newClock())
	d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r", Key: "k"})
	if got := d.Denial(&request{}).Status; err != nil || got != 418 {
		t.Errorf("%v: status %d, want the hook's", err, got)
	}
	if got := (core.Decision{}).Denial(&request{}).Status; got != 429 {
		t.Errorf("of no limiter: status %d, want 429", got)
	}
}
