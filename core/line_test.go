package core_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// givesBack are the ways in which a key gets hits back before its window ends.
var givesBack = map[string]func(context.Context, *core.Limiter, core.Decision) error{
	"Reset":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Reset(ctx, waitedFor) },
	"ResetAll": func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.ResetAll(ctx) },
	"Block":    func(ctx context.Context, l *core.Limiter, _ core.Decision) error { return l.Block(ctx, 0, waitedFor) },
	"Grant": func(ctx context.Context, l *core.Limiter, _ core.Decision) error {
		_, err := l.Grant(ctx, 2, waitedFor)
		return err
	},
	"Adjust": func(ctx context.Context, l *core.Limiter, d core.Decision) error { return l.Adjust(ctx, d, 0) },
	"Counts": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: 404})
		return nil
	},
	"Clears": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		l.Settle(&request{}, d, core.Outcome{Status: 204})
		return nil
	},
	"SetCost": func(_ context.Context, l *core.Limiter, d core.Decision) error {
		d.SetCost(0)
		l.Settle(&request{}, d, core.Outcome{Status: 200})
		return nil
	},
}

// forgiving is a configuration whose requests wait. They cost two hits of two, and the handler may
// say that it was less.
func forgiving(store core.Store) core.Config {
	config := patient(time.Minute, fixed(2, time.Minute))
	config.Store = store
	rule := &config.Rules[0]
	rule.Cost = costs(2)
	rule.Counts = func(_ core.Request, o core.Outcome) bool { return o.Status != 404 }
	rule.Clears = func(_ core.Request, o core.Outcome) bool { return o.Status == 204 }
	return config
}

// The requests that wait get their turn once a slow store has given the hits back, and not before,
// when they would find nothing.
func TestWhatIsGivenBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, c := false, newCrowd()
				l := newLimiter(t, forgiving(aroundMemory(func(ctx context.Context, c core.Counters, b *core.Batch) error {
					if slow && b.Op&(core.OpTake|core.OpPeek|core.OpCharge) == 0 {
						time.Sleep(time.Second)
					}
					return c.Do(ctx, b)
				})), nil)
				first := l.Check(&request{})
				if name == "Block" {
					reset(t, l, waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				if n := hooktest.Count(l).Waiting; n != 2 || !first.Allowed {
					t.Fatalf("%d requests wait, %v", n, first)
				}
				reset(t, l, core.Hit{Rule: "r", Key: "other"})
				slow = true
				if err := giveBack(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if c.inOrder(t, 2); c.at(1) != time.Second {
					t.Errorf("the last one waited for %v", c.at(1))
				}
			})
		})
	}
}

// The hits come back just when a request has been denied, and before it is in line.
func TestWhatIsGivenBackBeforeTheLineIsNotMissed(t *testing.T) {
	for name, giveBack := range givesBack {
		if name == "Block" {
			continue // it gives nothing back
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				l := newLimiter(t, forgiving(s), nil)
				first := l.Check(&request{})
				s.after = func(ctx context.Context, _ *core.Batch) {
					s.after = nil
					if err := giveBack(ctx, l, first); err != nil {
						t.Error(err)
					}
				}
				if d := l.Check(&request{}); !d.Allowed || d.Waited != 0 || s.takes.Load() != 3 {
					t.Errorf("%v after %v, %d takes", d, d.Waited, s.takes.Load())
				}
			})
		})
	}
}

// A request that goes away while the store denies it is charged nothing, also if a hit comes back.
func TestARequestThatGoesAwayWhileTheStoreDeniesIt(t *testing.T) {
	for _, window := range []time.Duration{time.Second, time.Hour} { // the wait is short, or too long
		s := newAsked()
		config := patient(time.Minute, fixed(1, window))
		config.Store = s
		l := newLimiter(t, config, nil)
		for _, ask := range []func(context.Context) (core.Decision, error){
			func(ctx context.Context) (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil },
			func(ctx context.Context) (core.Decision, error) { return l.Wait(ctx, 1, waitedFor) },
		} {
			reset(t, l, waitedFor)
			l.Allow(t.Context(), waitedFor)
			ctx, cancel := context.WithCancel(t.Context())
			s.after = func(context.Context, *core.Batch) {
				s.after = nil
				cancel()
				reset(t, l, waitedFor)
			}
			if d, _ := ask(ctx); d.Allowed || d.Reason != core.ReasonCanceled {
				t.Errorf("%v: %v", window, d)
			}
			if d, _ := l.Peek(t.Context(), 1, waitedFor); !d.Allowed {
				t.Errorf("%v: charged: %v", window, d)
			}
		}
	}
}

// What a store says of one take is not said of the next one.
func TestTheFlagsOfATakeEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := core.Config{Store: s, MaxWait: time.Minute, Rules: numbered(2)}
		config.Rules[0].Limits, config.Rules[1].MaxWait = []core.Limit{fixed(1, time.Second)}, time.Millisecond
		l := newLimiter(t, config, nil)
		l.Check(&request{})
		s.before = func(b *core.Batch) {
			if b.Degraded || b.Cached || b.Items[1].Unknown {
				t.Errorf("asked with degraded %t, cached %t, unknown %t", b.Degraded, b.Cached, b.Items[1].Unknown)
			}
		}
		s.after = func(_ context.Context, b *core.Batch) {
			s.after = nil
			b.Degraded, b.Cached, b.Items[1].Unknown, b.Items[1].Results[0].Allowed = true, true, true, false
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited == 0 || d.Degraded {
			t.Errorf("%v after %v, degraded %t", d, d.Waited, d.Degraded)
		}
		s.before, s.after = nil, func(_ context.Context, b *core.Batch) { b.Degraded = true }
		for range 10 {
			degraded := l.Check(&request{})
			if d, err := l.Take(t.Context(), 1); err != nil || d.Degraded || !degraded.Degraded {
				t.Fatalf("a take of nothing: %v, %v", d, err)
			}
		}
	})
}

// The rules that deny decide whether a request waits, and how long.
func TestARuleHasAMaxWaitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{MaxWait: time.Second, Rules: []core.Rule{
			{Name: "long", Key: methodKey("long"), Limits: []core.Limit{fixed(1, 10*time.Second)}, MaxWait: time.Minute},
			{Name: "other", Key: methodKey("other"), Limits: []core.Limit{fixed(1, 10*time.Second)}},
			{Name: "short", Key: methodKey("short"), Limits: []core.Limit{fixed(1, 500*time.Millisecond)}, MaxWait: 400 * time.Millisecond},
		}}, nil)
		for method, want := range map[string]time.Duration{"long": 10 * time.Second, "other": 0, "short": 0} {
			l.Check(&request{method: method})
			if d := l.Check(&request{method: method}); d.Allowed != (want > 0) || d.Waited != want {
				t.Errorf("%s: %v after %v", method, d, d.Waited)
			}
		}
		config := core.Config{Rules: numbered(2)} // a request of a rule without a MaxWait does not queue
		config.Rules[0].Limits, config.Rules[1].Key, config.Rules[1].MaxWait = []core.Limit{bucket(2, 2*time.Second)}, orSkip, time.Minute
		l = newLimiter(t, config, nil)
		hit := core.Hit{Rule: "r0", Key: "k"}
		_, _ = l.Take(t.Context(), 2, hit)
		newCrowd().come(0, func() (core.Decision, error) { return l.Wait(context.Background(), 2, hit) })
		time.Sleep(time.Second)
		if d := l.Check(&request{}); !d.Allowed || d.Waited != 0 {
			t.Errorf("%v after %v", d, d.Waited)
		}
		time.Sleep(time.Minute)
	})
}

// A request that is denied by a second key goes to that key's line, and holds nobody up in
// the line that it leaves.
func TestARequestWithTwoKeysHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Limits: []core.Limit{fixed(1, time.Second)}},
			{Name: "user", Limits: []core.Limit{fixed(1, 10*time.Second)}},
		}}, nil), newCrowd()
		ip, user := core.Hit{Rule: "ip", Key: "k"}, core.Hit{Rule: "user", Key: "k"}
		for i, hits := range [][]core.Hit{{user}, {ip}, {ip, user}, {ip}, {ip}} { // the third one waits for the user
			c.come(i, func() (core.Decision, error) { return l.Wait(context.Background(), 1, hits...) })
		}
		time.Sleep(time.Minute)
		for i, want := range []time.Duration{0, 0, 10 * time.Second, time.Second, 2 * time.Second} {
			if d, _ := c.of(i); d.at != want || d.err != nil {
				t.Errorf("request %d was allowed at %v, want %v: %v", i, d.at, want, d.err)
			}
		}
	})
}

// A request whose turn has come for one key does not overtake an earlier one that waits for
// another of its keys, even if there are hits enough for the later one.
func TestAtItsTurnARequestLooksAtTheLinesOfItsOtherKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "both", Limits: []core.Limit{bucket(2, 10*time.Second)}},
			{Name: "late", Limits: []core.Limit{bucket(1, 2*time.Second)}},
			{Name: "early", Limits: []core.Limit{bucket(2, time.Second)}},
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

// A request stands in no line of a key that it charges nothing.
func TestARequestThatCostsAKeyNothingDoesNotWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.Rules[0].Cost = func(r core.Request) (int64, error) { return int64(len(r.Method())), nil }
		config.Rules = append(config.Rules, core.Rule{Name: "b", Key: static("k"), Limits: []core.Limit{core.PerSecond(9)}})
		l, c := newLimiter(t, config, nil), newCrowd()
		for i, method := range []string{"1", "1", "1", ""} {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: method}), nil })
		}
		if d, done := c.of(3); !done || !d.Allowed || d.Waited != 0 {
			t.Errorf("%t, %v", done, d.Decision)
		}
		time.Sleep(time.Minute)
		if got := len(c.allowed()); got != 4 {
			t.Errorf("%d allowed, want 4", got)
		}
	})
}

// What a request in line may cost at most, and how long it waits, depends on the quota that it brings.
func TestARequestInLineHasTheQuotaThatItBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(0, fixed(2, time.Second)), nil), newCrowd()
		rich := core.Hit{Rule: "r", Key: "k", Quotas: []int64{10}}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // less than two windows
		defer cancel()
		for i, hit := range []core.Hit{waitedFor, waitedFor, rich} {
			c.come(i, func() (core.Decision, error) { return l.Wait(ctx, []int64{2, 1, 5}[i], hit) })
		}
		time.Sleep(time.Minute)
		c.inOrder(t, 3)
		if c.at(2) != time.Second {
			t.Errorf("allowed at %v, want 1s", c.at(2))
		}
	})
	for _, quota := range []int64{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			config := patient(1500*time.Millisecond, fixed(quota, time.Second))
			config.Rules[0].Quota = func(core.Request, core.Limit) (int64, error) { return 10, nil }
			l, c := newLimiter(t, config, nil), newCrowd()
			for i := range 31 {
				c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
			}
			time.Sleep(time.Minute)
			if got := len(c.allowed()); got != 20 || c.at(30) != 0 {
				t.Errorf("%d were allowed in two windows of 10, the last had its answer after %v", got, c.at(30))
			}
		})
	}
}

// However much the requests in line cost, each stays behind those before it.
func TestHugeCostsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(0, fixed(1, time.Second)), nil), newCrowd()
		if err := l.Block(t.Context(), time.Second, waitedFor); err != nil {
			t.Fatal(err)
		}
		for i, cost := range []int64{1, math.MaxInt64, math.MaxInt64, 2} {
			c.come(i, func() (core.Decision, error) {
				return l.Wait(t.Context(), cost, core.Hit{Rule: "r", Key: "k", Quotas: []int64{core.Unlimited}})
			})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		c.inOrder(t, 4)
		if got := fmt.Sprint(c.allowed()); got != "[0 1 2 3]" {
			t.Error(got)
		}
	})
}

// A request whose key is in the body waits too. If a rule without MaxWait denies it, the body is
// not read.
func TestRequestsThatNeedTheirBodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			ip, name time.Duration // the MaxWaits
			waits    bool
		}{{3 * time.Second, 0, true}, {0, time.Minute, false}} {
			l := newLimiter(t, core.Config{Rules: []core.Rule{
				{Name: "site", Key: static("k"), Limits: []core.Limit{core.PerHour(100)}}, // it denies nothing, and lets nothing wait
				{Name: "ip", Key: static("k"), Limits: []core.Limit{fixed(1, 2*time.Second)}, MaxWait: row.ip},
				{Name: "name", Key: bodyKey, Limits: []core.Limit{core.PerHour(100)}, MaxWait: row.name},
			}}, nil)
			l.Check(&request{body: "alice"})
			r := &request{body: "alice"}
			if d := l.Check(r); d.Allowed != row.waits || (d.Waited == 2*time.Second) != row.waits || (r.reads > 0) != row.waits {
				t.Errorf("MaxWait %v: %v after %v, body read %d times", row.ip, d, d.Waited, r.reads)
			}
		}
	})
}

// A request that costs more than a quota stands in no line.
func TestARequestThatNoWaitHelpsIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.Rules = append(config.Rules, core.Rule{Name: "banned", Key: methodKey("POST"), Limits: []core.Limit{core.PerSecond(1), core.PerHour(0)}})
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		if d := l.Check(&request{method: "POST"}); d.Allowed || d.Rule() != "banned" || d.RetryAfter != core.Never || d.Waited != 0 {
			t.Errorf("%v of rule %q", d, d.Rule())
		}
		time.Sleep(time.Minute)
		c.inOrder(t, 2)
	})
}

// The context of a request may end before its MaxWait.
func TestAContextThatEndsBeforeTheTurnIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(8*time.Second, fixed(1, time.Second)), nil), newCrowd()
		for i := range 5 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if d := l.Check(&request{ctx: ctx}); d.Allowed || d.Waited != 0 || d.RetryAfter < 4*time.Second {
			t.Errorf("%v", d)
		}
		time.Sleep(10 * time.Second)
	})
}
