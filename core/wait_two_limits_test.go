package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A store that has found one denial need not look at the other keys. What it has not looked at
// denies nobody.
func TestWhatAStoreHasNotLookedAtTurnsNobodyAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		store.after = func(_ context.Context, b *core.Batch) {
			if b.Op == core.OpPeek {
				b.Items[1].Unknown, b.Items[1].Results[0] = true, core.Result{}
			}
		}
		l, c := newLimiter(t, core.Config{Store: store, Rules: []core.Rule{
			{Name: "all", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: 5 * time.Second},
			{Name: "method", Key: byMethod, Limits: []core.Limit{core.PerHour(9)}},
		}}, nil), newCrowd()
		for i := range 3 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: "GET"}), nil })
		}
		if n, peeks := l.Stats().Waiting, store.peeks.Load(); n != 2 || peeks == 0 {
			t.Errorf("%d requests wait after %d peeks, want 2 after one", n, peeks)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if d, _ := c.of(2); !d.Allowed || d.Waited() != 4*time.Second {
			t.Errorf("%v after %v", d.Decision, d.Waited())
		}
	})
}

// How long the slots of others are leased says nothing about when the rate allows the next one:
// a request joins the line without asking the store.
func TestLeasesDoNotMakeALineAskTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		config := patient(10*time.Second, core.Limit{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}, core.InFlight(2))
		config.Store = store
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 4 {
			c.come(i, func() (core.Decision, error) {
				r := &request{}
				d := l.Check(r)
				l.Settle(r, d, core.Outcome{Status: 200})
				return d, nil
			})
		}
		if n, peeks := l.Stats().Waiting, store.peeks.Load(); n != 3 || peeks != 0 {
			t.Errorf("%d requests wait after %d peeks, want 3 after none", n, peeks)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(c.allowed()); n != 4 {
			t.Errorf("%d allowed", n)
		}
	})
}
