package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A request stands in no line of a key that it charges nothing.
func TestARequestThatCostsAKeyNothingDoesNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cost := func(r core.Request) (int64, error) { return int64(len(r.Method())), nil }
		l, c := newLimiter(t, core.Config{MaxWait: time.Minute, Rules: []core.Rule{
			{Name: "a", Key: static("k"), Limits: []core.Limit{core.PerSecond(1)}, Cost: cost},
			{Name: "b", Key: static("k"), Limits: []core.Limit{core.PerSecond(9)}},
		}}, nil), newCrowd()
		for i, method := range []string{"1", "1", "", "1"} {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: method}), nil })
		}
		if d, done := c.of(2); !done || !d.Allowed || d.Waited() != 0 {
			t.Errorf("%t, %v", done, d.Decision)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(c.allowed()); got != 4 {
			t.Errorf("%d allowed, want 4", got)
		}
	})
}

// The decision on a request whose client has gone names the key that it has waited for.
func TestAClientThatHasGoneHasWaitedForOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "open", Limits: []core.Limit{core.PerSecond(9)}},
			{Name: "busy", Limits: []core.Limit{core.PerHour(1)}},
			{Name: "last", Limits: []core.Limit{core.PerSecond(9)}},
		}}, nil)
		hits := []core.Hit{{Rule: "open", Key: "k"}, {Rule: "busy", Key: "k"}, {Rule: "last", Key: "k"}}
		if _, err := l.Take(t.Context(), 1, hits...); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		d, err := l.Wait(ctx, 1, hits...)
		if !errors.Is(err, context.Canceled) || d.Rule() != "busy" || d.Waited() != time.Second {
			t.Errorf("%v, %v: of the rule %q after %v, want busy after 1s", d, err, d.Rule(), d.Waited())
		}
	})
}

// The time of a request that joins a line may be over before it sleeps: it is denied then, and
// not when its turn comes.
func TestTheTimeIsOverBeforeTheRequestSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := newAsked()
		var joined atomic.Int64
		config := patient(3*time.Second, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow})
		config.Store = store
		config.Observer = observeFunc(func(string, []core.Rule) core.ObserverFuncs {
			return core.ObserverFuncs{Queued: func(context.Context, int, int64) {
				if joined.Add(1) == 2 {
					time.Sleep(time.Minute)
				}
			}}
		})
		store.before = func(b *core.Batch) {
			if b.Op == core.OpTake && time.Now().After(start) { // the head's second take
				time.Sleep(time.Hour)
			}
		}
		l, c := newLimiter(t, config, nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		if _, err := l.Take(t.Context(), 1, k); err != nil {
			t.Fatal(err)
		}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 1, k) })
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if d, _ := c.of(1); d.at != time.Minute || d.Allowed {
			t.Errorf("%v at %v, want a denial at 1m0s", d.Decision, d.at)
		}
	})
}

// What the line knows of the store is enough for a request whose time is long enough.
func TestTheStoreIsNotAskedByRequestsThatHaveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(0, core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket})
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		if _, err := l.Take(t.Context(), 10, k); err != nil {
			t.Fatal(err)
		}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 8, k) })
		for i, wait := range []time.Duration{1100 * time.Millisecond, 700 * time.Millisecond} { // all hits are back after a second
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			c.come(i+1, func() (core.Decision, error) { return l.Wait(ctx, 1, k) })
			if got := s.peeks.Load(); got != 0 {
				t.Errorf("request %d has asked the store", i+1)
			}
			time.Sleep(400 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
	})
}
