package core_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// bucket is a token bucket that holds as many hits as come back in the window.
func bucket(quota int64, window time.Duration) []core.Limit {
	return []core.Limit{{Quota: quota, Window: window, Algorithm: core.TokenBucket}}
}

// A request whose turn has come for one key does not overtake an earlier one that waits for
// another of its keys, even if there are hits enough for the later one.
func TestAtItsTurnARequestLooksAtTheLinesOfItsOtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "both", Limits: bucket(2, 10*time.Second)},
			{Name: "late", Limits: bucket(1, 2*time.Second)},
			{Name: "early", Limits: bucket(2, time.Second)},
		}}, nil), newCrowd()
		use := func(cost int64, rule string) {
			t.Helper()
			if d, err := l.Take(t.Context(), cost, core.Hit{Rule: rule, Key: "k"}); err != nil || !d.Allowed {
				t.Fatalf("%v, %v", d, err)
			}
		}
		use(2, "early")
		use(1, "late")
		for i, rule := range []string{"early", "late"} {
			c.come(i, func() (core.Decision, error) {
				return l.Wait(t.Context(), int64(2-i), core.Hit{Rule: "both", Key: "k"}, core.Hit{Rule: rule, Key: "k"})
			})
		}
		time.Sleep(500 * time.Millisecond)
		use(1, "both") // the first request waits for the second hit until 5.5s
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.at(0) != 5500*time.Millisecond || c.at(1) != 10500*time.Millisecond {
			t.Errorf("the first request was allowed at %v, the second at %v; want 5.5s and 10.5s", c.at(0), c.at(1))
		}
	})
}

// A request that has to wait for another of its keys leaves the line of the first one to those
// behind it.
func TestARequestStandsInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "short", Limits: bucket(1, time.Second)},
			{Name: "long", Limits: bucket(1, time.Hour)},
		}}, nil), newCrowd()
		short, long := core.Hit{Rule: "short", Key: "k"}, core.Hit{Rule: "long", Key: "k"}
		if _, err := l.Take(t.Context(), 1, short); err != nil {
			t.Fatal(err)
		}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 1, short, long) })
		c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, short) })
		if _, err := l.Take(t.Context(), 1, long); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if c.at(0) != time.Hour || c.at(1) != time.Second {
			t.Errorf("the request of both keys was allowed at %v, that of one at %v; want 1h and 1s", c.at(0), c.at(1))
		}
	})
}

// A request asks again after a millisecond if the store denies it and names no wait.
func TestAStoreThatNamesNoWaitIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		store.after = func(_ context.Context, b *core.Batch) {
			for i := range b.Items {
				for j := range b.Items[i].Results {
					if r := &b.Items[i].Results[j]; !r.Allowed {
						r.RetryAfter = 0
					}
				}
			}
		}
		config := patient(time.Minute, bucket(1, 10*time.Millisecond)...)
		config.Store = store
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if d, _ := c.of(1); !d.Allowed || d.at != 10*time.Millisecond || store.takes.Load() != 12 {
			t.Errorf("%v at %v after %d takes, want 12", d.Decision, d.at, store.takes.Load())
		}
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

// What a request in line may cost at most depends on the quota that it brings.
func TestARequestInLineHasTheQuotaThatItBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(0, core.Limit{Quota: 2, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		rich := core.Hit{Rule: "r", Key: "k", Quotas: []int64{10}}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 2, k) })
		c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, k) })
		c.come(2, func() (core.Decision, error) { return l.Wait(t.Context(), 5, rich) })
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 3)
		if c.at(2) != time.Second {
			t.Errorf("allowed at %v, want 1s", c.at(2))
		}
	})
}

// givesBack are the ways in which a key gets hits back before its window ends.
var givesBack = map[string]func(context.Context, *core.Limiter, core.Decision) error{
	"Reset":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Reset(ctx, waitedFor) },
	"ResetAll": func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.ResetAll(ctx) },
	"Block":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Block(ctx, 0, waitedFor) },
	"Adjust":   func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 0) },
	"Adjust after Settle": func(ctx context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return l.Adjust(ctx, d, 0)
	},
	"Counts": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNotFound})
		return nil
	},
	"Clears": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusNoContent})
		return nil
	},
	"SetCost": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		d.SetCost(0)
		l.Settle(&request{}, d, core.Outcome{Status: http.StatusOK})
		return nil
	},
}

var waitedFor = core.Hit{Rule: "r", Key: "k"}
