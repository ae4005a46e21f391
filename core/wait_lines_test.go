package core_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
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

// A request is denied at the end of the shortest of its rules' waits, also if the slot that it lacks
// may be released at any time and another rule would let it wait for longer.
func TestTheShortestOfTheRulesWaitsEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "slots", Key: static("k"), MaxWait: time.Second, Limits: []core.Limit{{Quota: 1, Window: core.DefaultLease, Algorithm: core.Leases}}},
			{Name: "hits", Key: static("k"), MaxWait: time.Minute, Limits: bucket(2, 2*time.Second)},
		}}, nil), newCrowd()
		one, err := l.Take(t.Context(), 1, core.Hit{Rule: "hits", Key: "k"})
		held := l.Check(&request{})
		c.come(0, func() (core.Decision, error) { return l.Check(&request{}), nil })
		time.Sleep(500 * time.Millisecond)
		if err := errors.Join(err, l.Adjust(t.Context(), one, 2)); err != nil { // no hit is there after a second
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if d, _ := c.of(0); !held.Allowed || d.Allowed || d.at != time.Second {
			t.Errorf("%v at %v, want a denial at 1s", d.Decision, d.at)
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

// The head of a line for slots asks the store once a second, as another process may have
// released one.
func TestTheHeadOfALineForSlotsAsksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(10*time.Second, core.InFlight(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		first := l.Check(&request{})
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		before := s.takes.Load()
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if got := s.takes.Load() - before; got != 3 {
			t.Errorf("it has asked %d times in 3.5 s, want 3", got)
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		synctest.Wait()
		if d, done := c.of(1); !done || !d.Allowed || d.at != 3500*time.Millisecond {
			t.Errorf("%t, %v at %v", done, d.Decision, d.at)
		}
	})
}

// A request that waits for a slot gets it when it is released, and not later. Nobody asks the
// store in between.
func TestRequestsWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(2*time.Second, core.InFlight(2)), nil), newCrowd()
		const requests = 10
		for i := range requests {
			c.come(i, func() (core.Decision, error) {
				d := l.Check(&request{})
				if d.Allowed {
					go func() {
						time.Sleep(700 * time.Millisecond) // the handler
						l.Settle(&request{}, d, core.Outcome{Status: 200})
					}()
				}
				return d, nil
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 6)
		for i := range requests {
			d, _ := c.of(i)
			want := time.Duration(i/2) * 700 * time.Millisecond
			if i >= 6 { // 2.1 s is too long
				want = 2 * time.Second
			}
			if d.at != want || d.Allowed != (i < 6) || d.Waited() != want {
				t.Errorf("request %d: %v at %v, want %v", i, d.Decision, d.at, want)
			}
		}
		if s := l.Stats(); s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A slot that is released just when a request has been denied, and before it is in line, is
// not missed.
func TestASlotThatIsReleasedBeforeTheLineIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.InFlight(1))
		config.Store = s
		l := newLimiter(t, config, nil)
		first := l.Check(&request{})
		s.after = func(_ context.Context, b *core.Batch) {
			if !b.Allowed {
				s.after = nil
				l.Settle(&request{}, first, core.Outcome{Status: 200})
			}
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 || s.takes.Load() != 3 {
			t.Errorf("%v after %v, %d takes", d, d.Waited(), s.takes.Load())
		}
	})
}

func TestAClientThatGoesAwayHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil), newCrowd()
		first := l.Check(&request{})
		ctx, cancel := context.WithCancel(t.Context())
		c.come(1, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		c.come(2, func() (core.Decision, error) { return l.Check(&request{}), nil })
		cancel()
		synctest.Wait()
		if d, done := c.of(1); !done || d.Allowed {
			t.Errorf("%t, %v", done, d)
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		synctest.Wait()
		if d, done := c.of(2); !done || !d.Allowed || d.at != 0 {
			t.Errorf("%t, %v", done, d)
		}
	})
}

// The store fails while requests wait for a slot: those behind the head learn it when the head does,
// and not at the end of their time.
func TestAllWhoWaitForASlotLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.InFlight(1))
		s, log := newAsked(), &lines{}
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 5 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		for i := 1; i < 5; i++ {
			if d, _ := c.of(i); !errors.Is(d.Err, core.ErrClosed) || d.at != time.Second {
				t.Errorf("request %d: %v, %v at %v, want 1s", i, d.Decision, d.Err, d.at)
			}
		}
	})
}

func TestWaitTakesNoSlot(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil)
	if _, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// The same with a clock that does not stand still: what is left of the request's time is
// never taken to be less than a wait for all of it.
func TestRequestsWaitLessThanASecondForASlot(t *testing.T) {
	for range 10 { // a busy machine may need several
		l := newLimiter(t, patient(900*time.Millisecond, core.InFlight(1)), nil)
		first, second := l.Check(&request{}), make(chan core.Decision, 1)
		go func() { second <- l.Check(&request{}) }()
		for l.Stats().Waiting == 0 && len(second) == 0 {
			runtime.Gosched()
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		if d := <-second; d.Allowed && d.Waited() > 0 {
			return
		}
	}
	t.Error("a request that may wait for 900 ms does not wait for a slot")
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
