package resilient_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

// acquired takes slots until one is denied, at most n.
func (i instance) acquired(n int) (releases []func()) {
	i.t.Helper()
	for range n {
		d, release, err := i.Acquire(i.t.Context(), alice)
		if err != nil {
			i.t.Fatal(err)
		}
		if !d.Allowed {
			break
		}
		releases = append(releases, release)
	}
	return releases
}

func releaseAll(releases []func()) {
	for _, release := range releases {
		release()
	}
}

func (i instance) wantSlots(when string, want int) {
	i.t.Helper()
	releases := i.acquired(100)
	if len(releases) != want {
		i.t.Errorf("%s: %d slots, want %d", when, len(releases), want)
	}
	releaseAll(releases)
}

func slotRule(n int64) core.Rule { return rule("user", core.InFlight(n)) }

// While the store is away, an instance gives its part of the slots. They are given back in the process: the store
// is not asked.
func TestAnOutageDividesTheSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Instances: 2}, slotRule(5))
		for _, i := range all {
			i.link.fail(errRefused)
		}
		held := [][]func(){all[0].acquired(100), all[1].acquired(100)}
		if len(held[0]) != 3 || len(held[1]) != 3 {
			t.Errorf("%d and %d slots of 5", len(held[0]), len(held[1]))
		}
		held[0][0]()
		held[0][0]() // counts once
		if again := all[0].acquired(100); len(again) != 1 {
			t.Errorf("%d slots after one release", len(again))
		}
		releaseAll(held[0])
		releaseAll(held[1])
		if n := all[0].link.leases.Load(); n != 0 {
			t.Errorf("the store was asked %d times for leases that it never had", n)
		}
		asked := all[1].link.asked.Load()
		all[1].link.fail(nil)
		time.Sleep(time.Minute)
		if n := all[1].link.asked.Load() - asked; n != 0 {
			t.Errorf("the store was asked %d times, and slots are no hits that it should be told of", n)
		}
	})
}

// Slots that the store has given count in the process when the store goes away, above its part if need be.
func TestSlotsFromBeforeAnOutageCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Instances: 2}, slotRule(5))
		one, two := all[0], all[1]
		held := one.acquired(4)
		one.link.fail(errRefused)
		two.link.fail(errRefused)
		one.wantSlots("with 4 of 3", 0)
		two.wantSlots("of the other instance", 3)
		releaseAll(held[:2])
		one.wantSlots("with 2 of 3", 1)
		releaseAll(held[2:])
		one.wantSlots("in the end", 3)

		// The releases had to wait for the store. Nothing is lost when it is back.
		one.link.fail(nil)
		two.link.fail(nil)
		time.Sleep(5 * time.Second)
		two.wantSlots("afterwards", 5)
	})
}

// What has begun in an outage, or before it, counts in the store again before the store decides
// on the key: also if the store has forgotten all.
func TestTheStoreLearnsWhatRunsWhenItIsBack(t *testing.T) {
	for name, forgets := range map[string]bool{"as it was": false, "empty": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := instances(t, 2, resilient.Config{Instances: 2}, slotRule(6))
				one, two := all[0], all[1]
				before := one.acquired(2)
				one.link.fail(errRefused)
				during := one.acquired(100)
				if len(during) != 1 {
					t.Fatalf("%d slots in the outage", len(during))
				}
				if forgets {
					one.link.Store.(*shared).forget(t, alice.Key)
				}
				one.link.fail(nil)
				time.Sleep(settled)
				more := one.acquired(1)
				two.wantSlots("of the other instance", 2)
				for _, some := range [][]func(){before, during, more} {
					releaseAll(some)
				}
				two.wantSlots("in the end", 6)
			})
		})
	}
}

// Without a request, the renewals tell the store.
func TestARenewalTellsTheStoreOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Instances: 2}, slotRule(6))
		one, two := all[0], all[1]
		one.link.fail(errRefused)
		during := one.acquired(100)
		time.Sleep(10 * time.Minute) // they are renewed in the process
		one.wantSlots("after many leases", 0)
		one.link.fail(nil)
		time.Sleep(core.DefaultLease / 10)
		two.wantSlots("of the other instance", 3)
		releaseAll(during)
		two.wantSlots("in the end", 6)
	})
}

// Renewals and releases ask a store that is away no more often than requests do: about once each
// Retry.
func TestRenewalsDoNotStormAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := instances(t, 1, resilient.Config{}, slotRule(2000))[0]
		held := one.acquired(2000)
		one.link.fail(errRefused)
		asked := one.link.asked.Load()
		for range 60 {
			time.Sleep(time.Second)
			held[0]()
			held = held[1:]
		}
		if n := one.link.asked.Load() - asked; n < 5 || n > 60 {
			t.Errorf("the store was asked %d times in a minute", n)
		}
		one.link.fail(nil)
		time.Sleep(5 * time.Second)
		one.wantSlots("afterwards", 60)
		releaseAll(held)
	})
}

// The reply to a take is lost. If the process denies the request, the slot that the store has given
// is free before the store decides again.
func TestALostReplyKeepsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Instances: 2, Failures: 3}, slotRule(4))
		one, two := all[0], all[1]
		held := one.acquired(2)
		one.link.late.Store(true)
		d, release, err := one.Acquire(t.Context(), alice)
		one.link.late.Store(false)
		if err != nil || d.Allowed || !d.Degraded {
			t.Fatalf("%v, %v", d, err)
		}
		release()
		two.wantSlots("while the store holds it", 1)
		one.wantSlots("once its owner asks", 2)
		two.wantSlots("afterwards", 2)
		releaseAll(held)

		// If the process admits it, it holds the slot.
		one.link.late.Store(true)
		d, release, err = one.Acquire(t.Context(), alice)
		one.link.late.Store(false)
		if err != nil || !d.Allowed {
			t.Fatalf("%v, %v", d, err)
		}
		two.wantSlots("while it runs", 3)
		release()
		two.wantSlots("when it is done", 4)
	})
}

// forget makes the server forget a key.
func (s *shared) forget(t *testing.T, key string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.bound.Reset(t.Context(), &core.Batch{Items: []core.Item{{Key: append([]byte(key), 0), Results: make([]core.Result, 2)}}}); err != nil {
		t.Fatal(err)
	}
}
