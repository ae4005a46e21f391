package resilient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A ResetAll that comes while the store is told of a block waits, so that the store hears of the block before.
func TestAResetAllWhileTheStoreIsToldOfABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &blocking{flaky: newFlaky(t, nil)}
		l := newLimiter(t, newStore(t, inner, resilient.Config{Failures: 1000, Timeout: time.Hour}), 5)
		inner.fail(errGone)
		if err := l.Block(t.Context(), time.Hour, core.Hit{Rule: "user", Key: "alice"}); err == nil {
			t.Fatal("the store does not answer: no error")
		}
		inner.fail(nil)
		inner.slow.Store(func() {
			inner.slow.Store(func() {})
			time.Sleep(time.Minute)
		})
		time.Sleep(settled) // the store is being told in the background
		if err := l.ResetAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if d, err := take(l); err != nil || !d.Allowed || d.Degraded {
			t.Errorf("after ResetAll: %v, %v, want that the key is admitted", d, err)
		}
	})
}
