package resilient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/core/storetest"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A block holds in the store, and in this process while the store does not answer.
func TestABlockHoldsInAnOutage(t *testing.T) {
	clock := storetest.NewClock(time.Unix(1_764_000_000, 0))
	inner := &blocking{flaky: newFlaky(t, clock.Now)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{Clock: clock.Now}), 5)
	alice := core.Hit{Rule: "user", Key: "alice"}
	if err := l.Block(t.Context(), time.Hour, alice); err != nil {
		t.Fatal(err)
	}
	denied := func(what string, want bool) {
		t.Helper()
		if d, err := take(l); err != nil || d.Allowed == want {
			t.Errorf("%s: %v, %v, want denied %t", what, d, err, want)
		}
	}
	denied("blocked", true)
	inner.fail(errGone)
	denied("in an outage", true)
	if err := l.Block(t.Context(), 0, alice); !errors.Is(err, errGone) && !errors.Is(err, resilient.ErrDown) {
		t.Errorf("the end of a block in an outage: %v", err)
	}
	denied("ended here", false)
}

func TestAStoreThatCannotBlock(t *testing.T) {
	l := newLimiter(t, newStore(t, newFlaky(t, nil), resilient.Config{}), 5)
	alice := core.Hit{Rule: "user", Key: "alice"}
	for name, err := range map[string]error{"Block": l.Block(t.Context(), time.Hour, alice), "ResetAll": l.ResetAll(t.Context())} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d, err := take(l); err != nil || !d.Allowed {
		t.Errorf("the process has blocked what the store cannot: %v, %v", d, err)
	}
}

func TestResetAllForgetsHereAndThere(t *testing.T) {
	inner := &blocking{flaky: newFlaky(t, nil)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{}), 1)
	for range 2 {
		if d, err := take(l); err != nil || !d.Allowed {
			t.Errorf("%v, %v", d, err)
		}
		if err := l.ResetAll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	inner.fail(errGone)
	if d, err := take(l); err != nil || !d.Allowed {
		t.Errorf("in an outage: %v, %v", d, err)
	}
}

// blocking is a flaky store that can block.
type blocking struct{ *flaky }

type blockingBound struct {
	flakyBound
	inner core.Bound
}

func (b blockingBound) Block(ctx context.Context, batch *core.Batch, d time.Duration) error {
	return b.do(func() error { return b.inner.(core.Blocker).Block(ctx, batch, d) })
}

func (b blockingBound) ResetAll(ctx context.Context) error {
	return b.do(func() error { return b.inner.(core.ResetterOfAll).ResetAll(ctx) })
}

func (b *blocking) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	inner, err := b.Store.Bind(limiter, rules)
	return blockingBound{flakyBound{inner, b.flaky}, inner}, err
}
