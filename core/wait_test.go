package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// A thousand requests come one after the other. Each is allowed at its instant. Another one
// comes at each instant at which a hit is there; a lock would let it in before those that wait.
func TestRequestsWaitInOrderAndAreAllowedAtTheirInstants(t *testing.T) {
	for name, ask := range map[string]func(*core.Limiter) (core.Decision, error){
		"Check": func(l *core.Limiter) (core.Decision, error) { return l.Check(&request{}), nil },
		"Wait": func(l *core.Limiter) (core.Decision, error) {
			return l.Wait(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const waiting, late = 1000, 300
				l, c := newLimiter(t, patient(time.Minute, perMilli), nil), newCrowd()
				for i := range waiting {
					c.come(i, func() (core.Decision, error) { return ask(l) })
				}
				if got := l.Stats().Waiting; got != waiting-1 {
					t.Errorf("%d are waiting, want %d", got, waiting-1)
				}
				for i := range late {
					time.Sleep(time.Millisecond)
					c.come(waiting+i, func() (core.Decision, error) { return ask(l) })
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				c.inOrder(t, waiting+late)
				for i := range waiting + late {
					if want := time.Duration(i) * time.Millisecond; c.at(i) != want {
						t.Fatalf("request %d was allowed at %v, want %v", i, c.at(i), want)
					}
					if d, _ := c.of(i); i < waiting && d.Waited() != time.Duration(i)*time.Millisecond || d.err != nil {
						t.Fatalf("request %d: waited %v, %v", i, d.Waited(), d.err)
					}
				}
				if s := l.Stats(); s.Allowed != waiting+late || s.Waited != waiting+late-1 || s.Waiting != 0 || s.Denied != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// With each algorithm, requests are allowed in order, and none is allowed later than the
// limit allows: a request by itself, a microsecond before, would be denied.
func TestRequestsWaitForEachAlgorithm(t *testing.T) {
	for _, limit := range []core.Limit{
		core.PerSecond(5),
		{Quota: 5, Window: time.Second, Algorithm: core.FixedWindow},
		{Quota: 5, Window: time.Second, Algorithm: core.BucketedWindow, Precision: 100 * time.Millisecond},
		{Quota: 5, Window: time.Second, Algorithm: core.SlidingLog},
		{Quota: 5, Window: time.Second, Algorithm: core.TokenBucket, Burst: 2},
		{Quota: 5, Window: time.Second, Algorithm: core.FixedWindow, Lockout: core.Lockout{First: time.Second, Factor: 2, Max: 4 * time.Second, Decay: time.Hour}},
	} {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := patient(time.Minute, limit)
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				const requests = 18
				for i := range requests {
					c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				c.inOrder(t, requests)
				if takes := s.takes.Load(); takes > requests+1 {
					t.Errorf("%d takes for %d requests", takes, requests)
				}
				for i := range requests {
					if want := earliest(t, limit, c, i); c.at(i) != want {
						t.Errorf("request %d was allowed at %v, could have been at %v", i, c.at(i), want)
					}
				}
			})
		})
	}
}

// earliest returns when request i could have been allowed after those before it.
func earliest(t *testing.T, limit core.Limit, c *crowd, i int) time.Duration {
	t.Helper()
	clock := &clock{now: c.begun}
	l := newLimiter(t, core.Config{Rules: []core.Rule{{Name: "r", Limits: []core.Limit{limit}}}}, clock)
	var now time.Duration
	for before := range i {
		clock.advance(c.at(before) - now)
		now = c.at(before)
		if d, err := l.Take(t.Context(), 1, core.Hit{Rule: "r"}); err != nil || !d.Allowed {
			t.Fatalf("request %d, allowed at %v: %v, %v", before, now, d, err)
		}
	}
	d, err := l.Peek(t.Context(), 1, core.Hit{Rule: "r"})
	if err != nil {
		t.Fatal(err)
	}
	return now + d.RetryAfter
}

// Workers that come again as soon as they are allowed ask the store about as often as they
// are allowed.
func TestAHerdOfWorkersTakesAsOftenAsItIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(0, core.PerSecond(10))
		config.Store = s
		l := newLimiter(t, config, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		allowed := make(chan int)
		for range 8 {
			go func() {
				n := 0
				for ; ; n++ {
					if _, err := l.Wait(ctx, 1, core.Hit{Rule: "r", Key: "k"}); err != nil {
						break
					}
				}
				allowed <- n
			}()
		}
		total := 0
		for range 8 {
			total += <-allowed
		}
		// When the first quota has run out, all workers may be denied before one of them stands
		// in line. In the last second a wait may be too long, and the store is asked for it.
		if takes, peeks := s.takes.Load(), s.peeks.Load(); total < 190 || float64(takes) > 1.1*float64(total) || peeks > 16 {
			t.Errorf("%d allowed, %d takes, %d peeks", total, takes, peeks)
		}
	})
}

func TestAWaitThatIsTooLongIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(2500*time.Millisecond, core.Limit{Quota: 10, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		for i := range 35 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		// 10 at once, 10 after a second, 10 after two. The others would wait for three.
		for i := 30; i < 35; i++ {
			d, done := c.of(i)
			if !done || d.Allowed || d.Reason != core.ReasonOverLimit || d.Waited() != 0 || d.RetryAfter != 3*time.Second {
				t.Fatalf("request %d: %t, %v", i, done, d)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2900*time.Millisecond)
		defer cancel()
		d, err := l.Wait(ctx, 1, core.Hit{Rule: "r", Key: "k"})
		if !errors.Is(err, core.ErrWaitTooLong) || d.Allowed || time.Since(c.begun) != 0 {
			t.Errorf("a context that ends first: %v, %v", d, err)
		}
		if d, err := l.Wait(t.Context(), 11, core.Hit{Rule: "r", Key: "k"}); !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != core.Never || time.Since(c.begun) != 0 {
			t.Errorf("a cost above the quota: %v, %v", d, err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		c2 := c.allowed()
		if len(c2) != 30 || c.at(29) != 2*time.Second || c.at(19) != time.Second {
			t.Errorf("%d allowed, the last at %v", len(c2), c.at(29))
		}
	})
}

func TestALineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.MaxWaiters, config.MaxWaitersTotal = 3, 5
		config.Rules[0].Key = func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
		l, c := newLimiter(t, config, nil), newCrowd()
		come := func(i int, key string) {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: key}), nil })
		}
		for i := range 5 { // one is allowed, three wait
			come(i, "a")
		}
		for i := range 4 { // one is allowed, two wait: the limiter's lines are full
			come(10+i, "b")
		}
		for _, i := range []int{4, 13} {
			if d, done := c.of(i); !done || d.Allowed || d.RetryAfter <= 0 {
				t.Errorf("request %d: %t, %v", i, done, d)
			}
		}
		if _, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "a"}); !errors.Is(err, core.ErrLineFull) {
			t.Errorf("a full line: %v", err)
		}
		if got := l.Stats().Waiting; got != 5 {
			t.Errorf("%d wait, want 5", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := l.Stats(); s.Waiting != 0 || s.Allowed != 7 || s.Denied != 3 {
			t.Errorf("%+v", s)
		}
	})
}

func TestARequestThatGoesAwayIsChargedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.PerSecond(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		var cancels [6]context.CancelFunc
		for i := range cancels {
			var ctx context.Context
			ctx, cancels[i] = context.WithCancel(t.Context())
			c.come(i, func() (core.Decision, error) {
				if i%2 == 1 {
					return l.Check(&request{ctx: ctx}), nil
				}
				return l.Wait(ctx, 1, core.Hit{Rule: "r", Key: "k"})
			})
		}
		asks := s.takes.Load() + s.peeks.Load()
		cancels[1]() // the head, a Check
		cancels[4]() // in the line, a Wait
		synctest.Wait()
		if d, _ := c.of(1); c.at(1) != 0 || d.Allowed || !errors.Is(d.Err, context.Canceled) || d.Key() != "k" {
			t.Errorf("a Check whose client has gone: %v, %v", d, d.Err)
		}
		if d, _ := c.of(4); !errors.Is(d.err, context.Canceled) || errors.Is(d.err, core.ErrWaitTooLong) {
			t.Errorf("a Wait whose context was canceled: %v", d.err)
		}
		if got := s.takes.Load() + s.peeks.Load(); got != asks {
			t.Errorf("the store was asked %d times because clients went away", got-asks)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(c.allowed()); got != "[0 2 3 5]" {
			t.Errorf("allowed %s", got)
		}
		if c.at(5) > 6*time.Second {
			t.Errorf("the last was allowed at %v", c.at(5))
		}
		if d, _ := l.Peek(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !d.Allowed {
			t.Errorf("charged: %v", d)
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

func TestWaitsAreConfigured(t *testing.T) {
	for want, change := range map[string]func(*core.Config){
		"MaxWait: -1ns: must be from 0 to 366 days":                                                                                          func(c *core.Config) { c.MaxWait = -1 },
		"Rules[0] (\"r\").MaxWait: 8785h0m0s: must be from 0 to 366 days":                                                                    func(c *core.Config) { c.Rules[0].MaxWait = core.MaxWindow + time.Hour },
		"MaxWait: 2ns: must be 0, or from 1ms to 366 days: a number without a unit counts nanoseconds, so write 2*time.Second for 2 seconds": func(c *core.Config) { c.MaxWait = 2 },
		"MaxWaiters: -1: must be from 1 to 1000000, or 0 for 100":                                                                            func(c *core.Config) { c.MaxWaiters = -1 },
		"MaxWaitersTotal: 1000001: must be from 1 to 1000000, or 0 for 10000":                                                                func(c *core.Config) { c.MaxWaitersTotal = 1_000_001 },
	} {
		config := patient(0, core.PerSecond(1))
		change(&config)
		if _, err := core.New(config); !errors.Is(err, core.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, d := range []time.Duration{0, core.MinWindow, core.MaxWindow} {
		if _, err := core.New(patient(d, core.PerSecond(1))); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}
