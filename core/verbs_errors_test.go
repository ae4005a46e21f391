package core_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

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
