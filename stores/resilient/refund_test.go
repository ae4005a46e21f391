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

func TestRefundsGoWhereTheChargeWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 2)
		inStore, _ := take(l)
		f.fail(errGone)
		inProcess, _ := take(l)
		if inStore.Degraded || !inProcess.Degraded {
			t.Fatal("not charged where the test wants it")
		}
		if err := l.Adjust(context.Background(), inStore, 0); !errors.Is(err, resilient.ErrDown) {
			t.Errorf("a refund that the store cannot be told: %v", err)
		}
		if err := l.Adjust(context.Background(), inProcess, 0); err != nil {
			t.Error(err)
		}
		left := func() int64 {
			d, err := l.Peek(context.Background(), 0, core.Hit{Rule: "user", Key: "alice"})
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining
		}
		if n := left(); n != 2 {
			t.Errorf("%d left in the process, want 2", n)
		}
		again, _ := take(l)
		f.fail(nil)
		time.Sleep(2 * time.Second)
		if n := left(); n != 0 {
			t.Errorf("%d left in the store, want 0: it could not be told of the refund, and has been charged with the hit of the outage", n)
		}
		if err := l.Adjust(context.Background(), again, 0); err != nil {
			t.Error(err)
		}
		if n := left(); n != 0 {
			t.Errorf("%d left in the store after a refund of what was charged in the process, want 0", n)
		}
	})
}

func TestAResetForgetsInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		l := newLimiter(t, newStore(t, f, resilient.Config{Failures: 1}), 1)
		hit := core.Hit{Rule: "user", Key: "alice"}
		_, _ = take(l)
		f.fail(errGone)
		_, _ = take(l)
		if err := l.Reset(context.Background(), hit); !errors.Is(err, resilient.ErrDown) {
			t.Errorf("a reset that the store cannot be told: %v", err)
		}
		if d, _ := take(l); !d.Allowed {
			t.Error("not forgotten in the process")
		}
		f.fail(nil)
		time.Sleep(1250 * time.Millisecond)
		if d, _ := take(l); d.Allowed {
			t.Error("the store has forgotten what it was not told to")
		}
		if err := l.Reset(context.Background(), hit); err != nil {
			t.Error(err)
		}
		if d, _ := take(l); !d.Allowed || d.Degraded {
			t.Errorf("%v, after a reset", d)
		}
	})
}
