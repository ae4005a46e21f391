package resilient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func (i instance) reconfigure(rules ...core.Rule) {
	i.t.Helper()
	if err := i.Reconfigure(core.Config{Rules: rules}); err != nil {
		i.t.Fatal(err)
	}
}

// An instance has its part of the quotas of a new configuration.
func TestANewConfigurationIsDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := instances(t, 2, resilient.Config{Instances: 2}, rule("user", fixed(4, time.Hour)))[0]
		one.reconfigure(rule("user", fixed(10, time.Hour)))
		one.link.fail(errRefused)
		if n := one.admitted(20, alice); n != 5 {
			t.Errorf("in an outage %d are admitted, want 5 of 10", n)
		}
	})
}

// The hits of an outage are charged to a rule that is new.
func TestHitsOfARuleThatIsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user, addr := rule("user", fixed(10, time.Hour)), rule("addr", fixed(10, time.Hour))
		all := instances(t, 2, resilient.Config{}, user)
		for _, i := range all {
			i.reconfigure(addr, user)
		}
		a, b := all[0], all[1]
		hit := core.Hit{Rule: "addr", Key: "alice"}
		b.link.fail(errRefused)
		b.admitted(4, hit)
		b.link.fail(nil)
		time.Sleep(settled)
		if n := a.admitted(20, hit); n != 6 {
			t.Errorf("%d are admitted, want 6", n)
		}
	})
}

// A lease of an outage stays under a new configuration: the store learns of it when it is back.
func TestALeaseOfAnOutageUnderANewConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{}, slotRule(4))
		one, two := all[0], all[1]
		one.link.fail(errRefused)
		held := one.acquired(1)
		one.reconfigure(slotRule(4))
		one.link.fail(nil)
		time.Sleep(settled)
		more := one.acquired(1)
		two.wantSlots("of the other instance", 2)
		releaseAll(held)
		releaseAll(more)
		two.wantSlots("in the end", 4)
	})
}
