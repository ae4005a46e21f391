package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// both is a configuration of two rules that each request takes a slot of.
func both(store core.Store) core.Config {
	return core.Config{Name: "api", Store: store, Rules: []core.Rule{
		{Name: "user", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}},
		{Name: "other", Key: static("ann"), Limits: []core.Limit{core.InFlight(1)}},
	}}
}

func slots(t *testing.T, l *core.Limiter, want int64, when string) {
	t.Helper()
	for _, rule := range []string{"user", "other"} {
		if got := left(t, l, rule, "ann"); got != want {
			t.Errorf("%s: rule %s has %d slots left, want %d", when, rule, got, want)
		}
	}
}

// Settle does not end the slots that the handler holds: the handler releases them.
func TestHoldKeepsTheSlotsOfAllRules(t *testing.T) {
	for name, store := range map[string]core.Store{"in the process": nil, "shared": newShared(t)} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, both(store), nil)
			d := l.Check(&request{})
			release, held := d.Hold()
			l.Settle(&request{}, d, core.Outcome{Status: 101})
			if slots(t, l, 0, "after Settle"); !held {
				t.Error("not held")
			}
			release()
			slots(t, l, 1, "after the release")
			release, held = d.Hold()
			if release(); held {
				t.Error("a decision whose slots have ended holds some")
			}
			slots(t, l, 1, "after a release of nothing")
		})
	}
}

// The observer is told of the end of a lease when the slot is free. The time for which the slot was held does not
// include the store's time for the release.
func TestTheObserverIsToldOfASlotThatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *core.Limiter
		told := 0
		config := both(releasing(t, func(context.Context) error {
			time.Sleep(5 * time.Second)
			return nil
		}))
		config.Observer = observeFunc(func(string, []core.Rule) core.ObserverFuncs {
			return core.ObserverFuncs{Held: func(_ context.Context, rule int, slots int64, took time.Duration) {
				if slots > 0 {
					return
				}
				told++
				if got := left(t, l, config.Rules[rule].Name, "ann"); got != 1 || took != time.Second {
					t.Errorf("told of rule %d: %d slots left, held for %v: want 1 and 1s", rule, got, took)
				}
			}}
		})
		l = newLimiter(t, config, nil)
		_, release := acquire(t, l, core.Hit{Rule: "user", Key: "ann"})
		time.Sleep(time.Second)
		release()
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

// A store that is closed, or has certainly charged nothing, has given no lease that somebody must release.
func TestNothingIsReleasedThatWasNotTaken(t *testing.T) {
	for _, row := range []struct {
		err  error
		want int
	}{{errors.New("no reply"), 1}, {core.ErrClosed, 0}, {core.ErrNotCharged, 0}} {
		synctest.Test(t, func(t *testing.T) {
			store := newShared(t)
			store.failTake = row.err
			l := inFlight(t, 1, store)
			if _, _, err := l.Acquire(t.Context(), ann); !errors.Is(err, row.err) {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if store.releases != row.want {
				t.Errorf("%v: %d releases, want %d", row.err, store.releases, row.want)
			}
		})
	}
}

// A store finds a lease only in the items that take one: not in those of rates, of a cost of 0 and of a peek,
// whatever the memory was used for before. It finds room for the results of each item, and for no more.
func TestOnlyTheItemsThatTakeASlotHaveALease(t *testing.T) {
	store := newAsked()
	store.before = func(b *core.Batch) {
		for _, it := range b.Items {
			if got, want := it.Lease != 0, b.Op == core.OpTake && it.Rule == 0 && it.Cost > 0; got != want {
				t.Errorf("rule %d, cost %d, %v: a lease %t, want %t", it.Rule, it.Cost, b.Op, got, want)
			}
			if len(it.Results) != 1 || cap(it.Results) != 1 || cap(it.Key) != len(it.Key) {
				t.Errorf("rule %d: room for %d results, and for %d bytes of a key of %d", it.Rule, cap(it.Results), cap(it.Key), len(it.Key))
			}
		}
	}
	l := newLimiter(t, core.Config{Store: store, Rules: []core.Rule{
		{Name: "slots", Limits: []core.Limit{core.InFlight(2)}},
		{Name: "rate", Limits: []core.Limit{core.PerMinute(100)}},
	}}, nil)
	hits := []core.Hit{{Rule: "slots", Key: "ann"}, {Rule: "rate", Key: "ann"}}
	for _, hits := range [][]core.Hit{hits, {hits[1], hits[0]}} {
		for range 5 {
			_, release := acquire(t, l, hits...)
			if _, err := l.Peek(t.Context(), 1, hits...); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Take(t.Context(), 0, hits...); err != nil {
				t.Fatal(err)
			}
			release()
		}
	}
	if store.takes.Load() == 0 || store.peeks.Load() == 0 {
		t.Errorf("the store was asked for %d takes and %d peeks", store.takes.Load(), store.peeks.Load())
	}
}
