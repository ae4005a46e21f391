package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A request that a rule without a wait denies takes no room in the line of a rule with one.
func TestWhoIsDeniedAnywayDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		l := newLimiter(t, core.Config{Store: store, MaxWaiters: 2, Rules: []core.Rule{
			{Name: "all", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: 5 * time.Second},
			{Name: "method", Key: byMethod, Limits: []core.Limit{core.PerHour(2)}},
		}}, nil)
		c := newCrowd()
		check := func(i int, method string) {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: method}), nil })
		}
		check(0, "greedy")
		check(1, "greedy") // waits: its own quota is not used up yet
		if peeks := store.peeks.Load(); peeks != 0 {
			t.Errorf("the store was asked %d times without a line", peeks)
		}
		if _, err := l.Take(t.Context(), 1, core.Hit{Rule: "method", Key: "greedy"}); err != nil {
			t.Fatal(err)
		}
		for i := 2; i < 10; i++ {
			check(i, "greedy")
			if d, over := c.of(i); !over || d.Allowed || d.Waited != 0 || d.Rule != "method" || d.at != 0 {
				t.Fatalf("request %d: ended %t, %v of rule %q after %v", i, over, d, d.Decision.Rule, d.Waited)
			}
		}
		check(10, "modest") // finds room
		time.Sleep(time.Minute)
		synctest.Wait()
		if d, _ := c.of(10); !d.Allowed || d.Waited != 2*time.Second {
			t.Errorf("%v after %v", d, d.Waited)
		}
	})
}

// byMethod is the key of a rule for each method.
func byMethod(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
