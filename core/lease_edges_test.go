package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// releasing is a shared store that calls before ahead of each release. An error of before is that of the release.
func releasing(t testing.TB, before func(context.Context) error) core.Store {
	s := newShared(t)
	s.do = func(ctx context.Context, c core.Counters, b *core.Batch) error {
		if b.Op == core.OpRelease {
			if err := before(ctx); err != nil {
				return err
			}
		}
		return s.lease(ctx, c, b)
	}
	return s
}

func TestTheSlotOfAClientThatHasGoneIsReleasedAtOnce(t *testing.T) {
	l := core.Must(core.New(core.Config{Name: "api", Store: releasing(t, context.Context.Err), Rules: []core.Rule{
		{Name: "user", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}},
	}}))
	ctx, cancel := context.WithCancel(t.Context())
	d := l.Check(&request{ctx: ctx})
	remaining(t, l, 0, "while it runs")
	cancel()
	l.Settle(&request{ctx: ctx}, d, core.Outcome{Canceled: true})
	remaining(t, l, 1, "after it")
	if n := l.Stats().Failed; n != 0 {
		t.Errorf("%d failures", n)
	}
}

func TestARequestThatCostsNothingHoldsNoSlot(t *testing.T) {
	free := func(core.Request) (int64, error) { return 0, nil }
	store := newShared(t)
	l := core.Must(core.New(core.Config{Name: "api", Store: store, Rules: []core.Rule{
		{Name: "user", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}, Cost: free},
	}}))
	for range 2 {
		d := l.Check(&request{})
		if _, held := d.Hold(); !d.Allowed || held {
			t.Errorf("%v, held %t", d, held)
		}
	}
	if store.releases != 0 {
		t.Errorf("%d releases", store.releases)
	}
}

// A lease that is shorter than those that are held already is renewed in its own time.
func TestAShorterLeaseIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		_, release := acquire(t, l, ann)
		defer release()
		if err := l.Reconfigure(core.Config{Rules: []core.Rule{{Name: "user", Limits: []core.Limit{
			{Quota: 1, Window: 3 * time.Second, Algorithm: core.Leases},
		}}}}); err != nil {
			t.Fatal(err)
		}
		_, short := acquire(t, l, core.Hit{Rule: "user", Key: "bob"})
		defer short()
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		if store.renews == 0 {
			t.Error("not renewed after half of the lease")
		}
	})
}

// A lease that may have been given is released for its own key, whatever has come since.
func TestALostLeaseKeepsItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		l := inFlight(t, 1, store)
		store.set(func() { store.failTake = errors.New("no reply") })
		if _, _, err := l.Acquire(t.Context(), ann); err == nil {
			t.Fatal("no error")
		}
		store.set(func() { store.failTake = nil })
		for range 20 { // whatever memory the first one had is used again
			if _, release := acquire(t, l, core.Hit{Rule: "user", Key: "bob"}); release != nil {
				release()
			}
		}
		time.Sleep(time.Second)
		remaining(t, l, 1, "a second later")
	})
}

// A slot that is released in the background calls the first in line, as any other.
func TestAReleaseInTheBackgroundCallsTheFirstInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newShared(t)
		config := patient(time.Minute, core.InFlight(1))
		config.Name, config.Store = "api", store
		l, c := newLimiter(t, config, nil), newCrowd()
		first := l.Check(&request{})
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		time.Sleep(100 * time.Millisecond)
		store.set(func() { store.fail = errors.New("gone") })
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		store.set(func() { store.fail = nil })
		time.Sleep(time.Second)
		synctest.Wait()
		if d, _ := c.of(1); !d.Allowed || d.at != 150*time.Millisecond {
			t.Errorf("%v at %v, want 150ms", d.Decision, d.at)
		}
	})
}
