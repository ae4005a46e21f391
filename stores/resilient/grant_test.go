package resilient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func (b blockingBound) Grant(ctx context.Context, batch *core.Batch) error {
	defer b.gave()
	return b.do(func() error { return b.inner.(core.Granter).Grant(ctx, batch) })
}

// Hits are granted in the store and in this process, so that they are there in an outage, too;
// in an outage none are granted.
func TestAGrantCountsHereAndThere(t *testing.T) {
	inner := &blocking{flaky: newFlaky(t, nil)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{Failures: 1}), 5)
	alice := core.Hit{Rule: "user", Key: "alice"}
	if d, err := l.Take(t.Context(), 5, alice); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	if d, err := l.Grant(t.Context(), 2, alice); err != nil || d.Remaining != 2 || d.Degraded {
		t.Errorf("%v, %v", d, err)
	}
	inner.fail(errGone)
	for i := range 3 {
		if d, err := take(l); err != nil || d.Allowed != (i < 2) {
			t.Errorf("hit %d in an outage: %v, %v", i, d, err)
		}
	}
	if _, err := l.Grant(t.Context(), 2, alice); !errors.Is(err, resilient.ErrDown) || !errors.Is(err, core.ErrNotCharged) {
		t.Errorf("a grant in an outage: %v", err)
	}
	if d, err := take(l); err != nil || d.Allowed {
		t.Errorf("a grant that failed: %v, %v", d, err)
	}
}

// A grant that the store may have made, although its answer was an error, is not made here.
func TestAGrantThatFailsIsNotMadeHere(t *testing.T) {
	for _, mode := range []resilient.Mode{resilient.ModeInProcess, resilient.ModeOpen, resilient.ModeClosed} {
		inner := &blocking{flaky: newFlaky(t, nil)}
		l := newLimiter(t, newStore(t, inner, resilient.Config{Meanwhile: mode}), 5)
		alice := core.Hit{Rule: "user", Key: "alice"}
		if _, err := l.Take(t.Context(), 5, alice); err != nil {
			t.Fatal(err)
		}
		inner.fail(errGone)
		if _, err := l.Grant(t.Context(), 2, alice); !errors.Is(err, errGone) || errors.Is(err, core.ErrNotCharged) {
			t.Errorf("%v: %v", mode, err)
		}
		if d, _ := take(l); d.Allowed != (mode == resilient.ModeOpen) {
			t.Errorf("%v: %v", mode, d)
		}
		inner.fail(nil)
		if d, err := l.Grant(t.Context(), 2, alice); err != nil || d.Remaining != 2 {
			t.Errorf("%v, the store is back: %v, %v", mode, d, err)
		}
	}
	l := newLimiter(t, newStore(t, newFlaky(t, nil), resilient.Config{}), 5)
	if _, err := l.Grant(t.Context(), 2, core.Hit{Rule: "user", Key: "alice"}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("a store that cannot grant: %v", err)
	}
}

// Hits of an outage that the store does not know of yet are charged before a grant, which
// gives back some of them, here and there.
func TestAGrantAfterAnOutage(t *testing.T) {
	for _, divisible := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSums(t, 1, divisible, resilient.Config{Failures: 1 << 30}, fixed(6, year))
			i := s.instances[0]
			s.take(0, "k", 2, 0)
			i.link.fail(errGone)
			if b := s.take(0, "k", 3, 0); !b.Allowed || !b.Degraded {
				t.Fatalf("in the outage: %+v", b)
			}
			grant := func(ctx context.Context) (*core.Batch, error) {
				b := s.batch("k", 4, 0)
				return b, i.Bound.(core.Granter).Grant(ctx, b)
			}
			if _, err := grant(t.Context()); !errors.Is(err, errGone) || !errors.Is(err, core.ErrNotCharged) {
				t.Errorf("in the outage: %v", err)
			}
			i.link.fail(nil)
			gone, cancel := context.WithCancel(t.Context())
			cancel() // whose browser has gone does not lose a grant
			if b, err := grant(gone); err != nil || b.Items[0].Results[0].Remaining != 5 {
				t.Errorf("after the outage: %v, %+v, want 5 hits left", err, b.Items[0].Results[0])
			}
			s.expect("after the grant", "k", 1)
			i.link.fail(errGone)
			if s.take(0, "k", 6, 0).Allowed || !s.take(0, "k", 5, 0).Allowed {
				t.Error("this process has not got the hits that the store has, or more")
			}
			i.link.fail(nil)
			time.Sleep(5 * time.Second)
			s.expect("in the end", "k", 6)
		})
	}
}
