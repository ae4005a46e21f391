package core_test

import (
	"context"
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
			if d, over := c.of(i); !over || d.Allowed || d.Waited() != 0 || d.Rule() != "method" || d.at != 0 {
				t.Fatalf("request %d: ended %t, %v of rule %q after %v", i, over, d, d.Decision.Rule(), d.Waited())
			}
		}
		check(10, "modest") // finds room
		time.Sleep(time.Minute)
		synctest.Wait()
		if d, _ := c.of(10); !d.Allowed || d.Waited() != 2*time.Second {
			t.Errorf("%v after %v", d, d.Waited())
		}
	})
}

// byMethod is the key of a rule for each method.
func byMethod(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }

func TestTheBodyOfARequestThatFindsTheLineFullIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		field := func(dst []byte, r core.Request) ([]byte, error) {
			b, err := r.Body(10)
			return append(dst, b...), err
		}
		l, c := newLimiter(t, core.Config{MaxWait: time.Minute, MaxWaiters: 1, Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}},
		}}, nil), newCrowd()
		var rs [3]*request
		for i := range rs {
			rs[i] = &request{body: "alice"}
			c.come(i, func() (core.Decision, error) { return l.Check(rs[i]), nil })
		}
		if d, done := c.of(2); !done || d.Allowed || d.Waited() != 0 || rs[2].reads != 0 {
			t.Errorf("%t, %v, body read %d times", done, d.Decision, rs[2].reads)
		}
		time.Sleep(time.Minute)
	})
}

// The decision on a request whose client has gone says how long it would have waited.
func TestARequestThatGoesAwayIsToldTheRestOfItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		}
		time.Sleep(300 * time.Millisecond)
		cancel()
		synctest.Wait()
		if d, done := c.of(1); !done || d.Allowed || d.RetryAfter != 700*time.Millisecond || d.Waited() != 300*time.Millisecond {
			t.Errorf("%t, %v, retry after %v", done, d.Decision, d.RetryAfter)
		}
	})
}
