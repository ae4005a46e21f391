package resilient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// A quota is used up, and the store comes back from an outage empty. If requests for
// the key were denied in the outage, the key stays denied until its window ends. Of
// several instances, perhaps only the first one sees that its hits are lost. Of a
// key that nobody asked for, the loss is not noticed.
func TestAKeyThatWasDeniedInAnOutageGetsNoFreshQuota(t *testing.T) {
	for name, limit := range map[string]core.Limit{
		"sliding":  {Quota: 12, Window: time.Hour},
		"fixed":    fixed(12, time.Hour),
		"log":      {Quota: 12, Window: time.Hour, Algorithm: core.SlidingLog},
		"token":    {Quota: 12, Window: time.Hour, Algorithm: core.TokenBucket},
		"bucketed": {Quota: 12, Window: time.Hour, Algorithm: core.BucketedWindow, Precision: time.Minute},
	} {
		for _, row := range []struct{ instances, asked, want int }{{1, 1, 0}, {1, 50, 0}, {3, 20, 8}, {1, 0, 12}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := instances(t, row.instances+1, resilient.Config{Instances: row.instances}, rule("user", limit))
					other, all := all[row.instances], all[:row.instances]
					for range 12 / row.instances {
						for _, i := range all {
							if i.admitted(1, alice) != 1 {
								t.Fatal("the quota is used up early")
							}
						}
					}
					for _, i := range all {
						i.link.fail(errRefused)
						if n := i.admitted(row.asked, alice); n != 0 {
							t.Errorf("%d admitted in the outage", n)
						}
					}
					other.reset(alice) // what is stored is lost
					for _, i := range all {
						i.link.fail(nil)
					}
					time.Sleep(settled)
					admitted := 0
					for range 20 {
						for _, i := range all {
							admitted += i.admitted(1, alice)
						}
					}
					if admitted > row.want || admitted < row.want && row.instances == 1 {
						t.Errorf("%d instances, asked %d times in the outage: %d admitted after it, want %d", row.instances, row.asked, admitted, row.want)
					}
					if d, err := all[0].Peek(context.Background(), 1, alice); err != nil || d.Degraded || d.Allowed {
						t.Errorf("%v, %v: want a denial by the store", d, err)
					}
					time.Sleep(2*time.Hour + time.Minute)
					if n := all[0].admitted(20, alice); n != 12 {
						t.Errorf("%d admitted when the window was over, want 12", n)
					}
				})
			})
		}
	}
}

// If the store comes back with its counts, nothing is charged for the denials, and a
// Reset that follows is the end of them.
func TestDenialsOfAnOutageAreNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 3, resilient.Config{Instances: 2}, rule("user", fixed(10, 24*time.Hour)))
		a, b, other := all[0], all[1], all[2]
		if n := a.admitted(5, alice) + b.admitted(2, alice); n != 7 {
			t.Fatalf("%d admitted, want 7", n)
		}
		a.link.fail(errRefused)
		if n := a.admitted(20, alice); n != 0 {
			t.Fatalf("%d admitted in the outage, want 0: the share is used up", n)
		}
		a.link.fail(nil)
		time.Sleep(settled)
		if n := b.admitted(20, alice); n != 3 {
			t.Errorf("%d admitted after the outage, want the 3 that are left of 10", n)
		}
		other.reset(alice)
		time.Sleep(time.Minute)
		if n := a.admitted(20, alice); n != 10 {
			t.Errorf("%d admitted after a reset, want 10", n)
		}
	})
}

// A store that answers too late once has lost nothing: if its counts are lower than
// those of the process, another instance has reset the key.
func TestADenialByASlowStoreUndoesNoReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Failures: 5, Timeout: time.Second}, rule("user", fixed(10, 24*time.Hour)))
		a, other := all[0], all[1]
		if n := a.admitted(20, alice); n != 10 {
			t.Fatalf("%d admitted, want 10", n)
		}
		other.reset(alice)
		a.link.slow.Store(func() { time.Sleep(2 * time.Second) })
		if n := a.admitted(1, core.Hit{Rule: "user", Key: "bob"}, alice); n != 0 {
			t.Fatal("the counters of the process have heard of the reset")
		}
		time.Sleep(time.Minute)
		a.link.slow.Store(func() {})
		time.Sleep(time.Minute)
		if n := other.admitted(20, alice); n != 9 {
			t.Errorf("%d admitted after a reset, want 9: the late request was charged", n)
		}
	})
}
