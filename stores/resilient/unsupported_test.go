package resilient_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// unblocking has the methods of a Blocker and a ResetterOfAll, and says that it can do neither,
// as a store around another does.
type unblocking struct{ *flaky }

type unblockingBound struct{ core.Bound }

func (unblockingBound) Block(context.Context, *core.Batch, time.Duration) error {
	return core.ErrUnsupported
}
func (unblockingBound) ResetAll(context.Context) error { return core.ErrUnsupported }

func (s *unblocking) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.flaky.Bind(limiter, rules)
	return unblockingBound{b}, err
}

// What the store says that it cannot do is not done in this process either.
func TestAStoreThatSaysThatItCannotBlock(t *testing.T) {
	inner := &unblocking{newFlaky(t, nil)}
	l := newLimiter(t, newStore(t, inner, resilient.Config{}), 1)
	if d, err := take(l); err != nil || !d.Allowed {
		t.Fatal(d, err)
	}
	alice := core.Hit{Rule: "user", Key: "alice"}
	for name, err := range map[string]error{"ResetAll": l.ResetAll(t.Context()), "Block": l.Block(t.Context(), 0, alice)} {
		if !errors.Is(err, core.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "user", Key: "bob"}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Block: %v", err)
	}
	inner.fail(errGone)
	if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "user", Key: "bob"}); err != nil || !d.Allowed {
		t.Errorf("the process has blocked what the store cannot: %v, %v", d, err)
	}
}
