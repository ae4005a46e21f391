package resilient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/stores/resilient"
)

func TestSlotsInTheOtherModes(t *testing.T) {
	for _, c := range []resilient.Config{
		{Meanwhile: resilient.ModeOpen}, {Meanwhile: resilient.ModeClosed}, {Meanwhile: resilient.ModeOpen, Failures: 1000}, {Meanwhile: resilient.ModeClosed, Failures: 1000},
	} {
		mode := c.Meanwhile
		t.Run(fmt.Sprint(mode, c.Failures), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one := instances(t, 1, c, slotRule(2))[0]
				held := one.acquired(1)
				one.link.fail(errRefused)
				asked := one.link.leases.Load()
				var more []func()
				for range 5 {
					d, release, err := one.Acquire(t.Context(), alice)
					if mode == resilient.ModeClosed && (!errors.Is(err, errRefused) && !errors.Is(err, resilient.ErrDown) || !errors.Is(err, core.ErrNotCharged)) || mode == resilient.ModeOpen && !d.Allowed {
						t.Fatalf("%v, %v", d, err)
					}
					more = append(more, release)
				}
				releaseAll(more)
				time.Sleep(time.Second)
				if n := one.link.leases.Load() - asked; n != 0 {
					t.Errorf("the store was asked %d times for leases that it never had", n)
				}
				one.link.fail(nil)
				time.Sleep(settled)
				one.wantSlots("afterwards", 1)
				releaseAll(held)
				one.wantSlots("in the end", 2)
			})
		})
	}
}

// The hits of a rate in the same rule count as those of a rule without slots: also if the process holds
// more slots than its part.
func TestARateBesideSlotsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Instances: 2}, rule("user", core.InFlight(4), fixed(10, 24*time.Hour)))
		one, two := all[0], all[1]
		held := one.acquired(4)
		one.link.fail(errRefused)
		one.wantSlots("with 4 of 2", 0)
		releaseAll(held)
		one.wantSlots("of its part of 5 hits, 4 are gone", 1)
		one.wantSlots("of its part of 5 hits, none is left", 0)
		one.link.fail(nil)
		time.Sleep(time.Minute)
		d, release, err := two.Acquire(t.Context(), alice)
		defer release()
		limits := slices.Collect(d.Limits())
		if err != nil || !d.Allowed || limits[0].Remaining != 3 || limits[1].Remaining != 4 {
			t.Errorf("%v, %v, %+v: want 3 slots and 4 hits left", d, err, limits)
		}
	})
}

// A failure or two, of which the circuit takes no notice, may be a server that was started again.
func TestAServerThatWasStartedAgainInNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := instances(t, 2, resilient.Config{Failures: 5}, slotRule(5))
		one, two := all[0], all[1]
		held := one.acquired(3)
		one.link.fail(errRefused)
		one.acquired(1)[0]()
		one.link.Store.(*shared).forget(t, alice.Key)
		one.link.fail(nil)
		one.wantSlots("after a failure", 2)
		two.wantSlots("of the other instance", 2)
		releaseAll(held)
	})
}

// noLeaser is a store that cannot count what is in flight.
type noLeaser struct{ core.Store }

type noLeaserBound struct{ core.Bound }

func (s noLeaser) Bind(limiter string, rules []core.StoreRule) (core.Bound, error) {
	b, err := s.Store.Bind(limiter, rules)
	return noLeaserBound{b}, err
}

func (b noLeaserBound) Rebind(rules []core.StoreRule) (core.Bound, error) {
	next, err := b.Bound.Rebind(rules)
	return noLeaserBound{next}, err
}

func TestAStoreWithoutLeasesIsRefused(t *testing.T) {
	s := newStore(t, noLeaser{core.Must(core.NewMemory(core.MemoryConfig{}))}, resilient.Config{Log: slog.New(slog.DiscardHandler)})
	rules := []core.StoreRule{{Name: "user", Limits: []core.Limit{core.InFlight(1)}}}
	if _, err := s.Bind("l", rules); !errors.Is(err, core.ErrConfig) {
		t.Errorf("Bind: %v", err)
	}
	b, err := s.Bind("m", []core.StoreRule{{Name: "user", Limits: []core.Limit{core.PerHour(1)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rebind(rules); !errors.Is(err, core.ErrConfig) {
		t.Errorf("Rebind: %v", err)
	}
}

// A caller that goes away while the store is asked keeps no slot in the process.
func TestACallerThatGoesAwayKeepsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := instances(t, 1, resilient.Config{}, slotRule(1))[0]
		ctx, cancel := context.WithCancel(t.Context())
		one.link.slow.Store(func() { cancel() })
		one.link.fail(context.Canceled)
		_, _, err := one.Acquire(ctx, alice)
		if err == nil {
			t.Error("no error")
		}
		one.link.slow.Store(func() {})
		one.link.fail(errRefused)
		one.wantSlots("in an outage", 1)
	})
}
