package resilient_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A lease may be released while the store is told of it. If the store gets the release first, it is told of the
// release once more.
func TestALeaseThatIsReleasedWhileTheStoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := instances(t, 1, resilient.Config{}, slotRule(2))[0]
		one.link.fail(errRefused)
		held := one.acquired(1)
		one.link.fail(nil)
		time.Sleep(settled)
		var first atomic.Bool
		one.link.slow.Store(func() {
			if first.CompareAndSwap(false, true) {
				releaseAll(held)
			}
		})
		releaseAll(one.acquired(1))
		one.wantSlots("afterwards", 2)
	})
}

// A caller that goes away while the store is told of other leases of the key keeps no slot in the process.
func TestACallerThatGoesAwayWhileTheStoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := instances(t, 1, resilient.Config{}, slotRule(3))[0]
		one.link.fail(errRefused)
		held := one.acquired(1)
		one.link.fail(nil)
		time.Sleep(settled)
		ctx, cancel := context.WithCancel(t.Context())
		one.link.slow.Store(func() { cancel() })
		one.link.fail(context.Canceled)
		if _, _, err := one.Acquire(ctx, alice); err == nil {
			t.Error("no error")
		}
		one.link.slow.Store(func() {})
		one.link.fail(errRefused)
		one.wantSlots("in an outage, beside one that is held", 2)
		releaseAll(held)
	})
}
