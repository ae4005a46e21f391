package resilient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// If a request cannot charge the hits of an outage, they are charged in the background, also if nothing was due
// there meanwhile.
func TestHitsThatARequestCouldNotCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Failures: 1000, Timeout: time.Hour}, rule("user", fixed(4, time.Hour)))
		a, b := all[0], all[1]
		b.link.fail(errRefused)
		b.admitted(4, alice)
		b.link.fail(nil)
		b.link.slow.Store(func() {
			time.Sleep(time.Minute) // the background finds nothing to do
			b.link.fail(errRefused)
		})
		b.admitted(1, alice) // it is denied
		b.link.slow.Store(func() {})
		b.link.fail(nil)
		time.Sleep(settled)
		if n := a.admitted(20, alice); n != 0 {
			t.Errorf("%d are admitted, want 0 of 4 after 4 in the outage", n)
		}
	})
}

// keeping is a store with a deadline of its own.
type keeping struct{ *flaky }

func (keeping) Traits() core.Traits { return core.Traits{KeepsDeadline: true} }

// Close waits for a charge that is under way.
func TestCloseWaitsForACharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky(t, nil)
		s := newStore(t, keeping{f}, resilient.Config{Failures: 1})
		l := newLimiter(t, s, 10)
		f.fail(errGone)
		if d, err := take(l); err != nil || !d.Degraded {
			t.Fatalf("%v, %v", d, err)
		}
		f.fail(nil)
		f.slow.Store(func() { time.Sleep(10 * time.Second) })
		time.Sleep(settled)
		if f.now.Load() != 1 {
			t.Fatal("no charge is under way")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := f.now.Load(); n != 0 {
			t.Errorf("after Close %d operations are under way, want none", n)
		}
	})
}
