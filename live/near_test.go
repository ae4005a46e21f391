package live_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/live"
)

// watched returns what tells a page of one rule about a decision, and a viewer of the page.
func watched(t *testing.T) (decided func(context.Context, core.Observation), v *viewer) {
	t.Helper()
	page := core.Must(live.New(live.Config{ShowKey: func(_, _, key string) string { return key }}))
	t.Cleanup(func() { _ = page.Close() })
	return page.Observe("api", []core.Rule{userRule}).Decided, follow(t, page)
}

// A key is near its limit if it has used more than half of it. The key that has used the
// largest share comes first, however often each key comes.
func TestTheKeysThatAreNearTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for i, remaining := range []int64{10, 6, 5, 4, 1, 3, 0, 2} {
			for range 10 - i { // the first keys come most often
				decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: fmt.Sprint(remaining), Remaining: remaining, Capacity: 10})
			}
		}
		time.Sleep(1500 * time.Millisecond)
		var near []string
		for _, k := range v.all()[1].Limiters[0].Near {
			near = append(near, fmt.Sprintf("%s: %.1f", k.Label, k.Used))
		}
		if got, want := fmt.Sprint(near), "[0: 1.0 1: 0.9 2: 0.8 3: 0.7 4: 0.6]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// If there are more decisions in a second than are noted, one outside the sample leaves no key.
func TestADecisionThatIsNotNotedLeavesNoKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for i := range 200_001 {
			key := "a"
			if i == 200_000 { // not in the sample, which is the same in all processes
				key = "b"
			}
			decided(context.Background(), core.Observation{Reason: core.ReasonWithinLimits, Allowed: true, Key: key, Capacity: 3})
			decided(context.Background(), core.Observation{Reason: core.ReasonOverLimit, Key: key, Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		l := v.all()[1].Limiters[0]
		if len(l.Near) != 1 || len(l.Denied) != 1 || l.Near[0].Label != "a" || l.Denied[0].Label != "a" {
			t.Errorf("near: %+v, denied: %+v, want a alone", l.Near, l.Denied)
		}
	})
}

// An observation of a rule that the page was not told about is counted for no rule.
func TestAnObservationOfAnUnknownRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decided, v := watched(t)
		for _, rule := range []int{-1, 1, 2} {
			decided(context.Background(), core.Observation{Rule: rule, Reason: core.ReasonWithinLimits, Allowed: true, Key: "a", Capacity: 3})
		}
		time.Sleep(1500 * time.Millisecond)
		if allowed, denied, dryRun := v.sum(0); allowed+denied+dryRun != 0 {
			t.Errorf("%d allowed, %d denied, %d dry run", allowed, denied, dryRun)
		}
	})
}
