package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// asked is a Memory that counts its takes and peeks, and calls before first.
type asked struct {
	around
	takes, peeks atomic.Int64
	before       func(b *core.Batch)
	after        func(ctx context.Context, b *core.Batch)
	fail         func(ctx context.Context) error
}

func newAsked() *asked {
	s := new(asked)
	s.around = around{core.Must(core.NewMemory(core.MemoryConfig{})), s.ask}
	return s
}

func (s *asked) ask(ctx context.Context, c core.Counters, b *core.Batch) error {
	switch b.Op {
	case core.OpPeek:
		s.peeks.Add(1)
	case core.OpTake:
		s.takes.Add(1)
	default:
		return c.Do(ctx, b)
	}
	if s.before != nil {
		s.before(b)
	}
	err := c.Do(ctx, b)
	if s.after != nil {
		s.after(ctx, b)
	}
	if err == nil && s.fail != nil {
		err = s.fail(ctx)
	}
	return err
}

// perMilli is a limit of one hit each millisecond.
var perMilli = core.Limit{Quota: 1000, Window: time.Second, Algorithm: core.TokenBucket, Burst: 1}

// patient is a configuration of one rule for the key "k", whose requests wait.
func patient(wait time.Duration, limits ...core.Limit) core.Config {
	return core.Config{MaxWait: wait, MaxWaiters: 20_000,
		Rules: []core.Rule{{Name: "r", Key: static("k"), Limits: limits}}}
}

// ended is how a request ended.
type ended struct {
	core.Decision
	err error
	at  time.Duration // since the crowd began
}

// crowd is requests that are made one after the other, each by a goroutine of its own.
type crowd struct {
	mu    sync.Mutex
	begun time.Time
	order []int // who was allowed, in order
	ended map[int]ended
}

func newCrowd() *crowd {
	return &crowd{begun: time.Now(), ended: map[int]ended{}}
}

// come makes request i, and returns once it waits or has ended.
func (c *crowd) come(i int, ask func() (core.Decision, error)) {
	go func() {
		d, err := ask()
		c.mu.Lock()
		defer c.mu.Unlock()
		if d.Allowed {
			c.order = append(c.order, i)
		}
		c.ended[i] = ended{d, err, time.Since(c.begun)}
	}()
	synctest.Wait()
}

// of returns how request i has ended, and whether it has.
func (c *crowd) of(i int) (ended, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.ended[i]
	return e, ok
}

// allowed returns who was allowed so far, in order.
func (c *crowd) allowed() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.order)
}

// at returns when request i ended.
func (c *crowd) at(i int) time.Duration {
	e, _ := c.of(i)
	return e.at
}

// inOrder tests that the first n requests were allowed, none before one that came earlier.
func (c *crowd) inOrder(t *testing.T, n int) {
	t.Helper()
	if got := len(c.allowed()); got != n {
		t.Fatalf("%d allowed, want %d", got, n)
	}
	for i := 1; i < n; i++ {
		if d, _ := c.of(i); !d.Allowed || d.at < c.at(i-1) {
			t.Fatalf("request %d ended at %v, request %d at %v", i, d.at, i-1, c.at(i-1))
		}
	}
}

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
				if takes := s.takes.Load(); takes > 2*requests {
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

// Workers that come again as soon as they are allowed ask the store at most about twice as often
// as they are allowed.
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
		if takes, peeks := s.takes.Load(), s.peeks.Load(); total < 190 || float64(takes) > 2.1*float64(total) || peeks > 16 {
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
		config.MaxWaiters = 1 // and 100 for all keys
		config.Rules[0].Key = func(dst []byte, r core.Request) ([]byte, error) { return append(dst, r.Method()...), nil }
		l, c := newLimiter(t, config, nil), newCrowd()
		come := func(i int, key string) {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{method: key}), nil })
		}
		for i := range 200 { // of each key one is allowed and one waits
			come(i, strconv.Itoa(i/2))
		}
		come(200, "0")     // the line of its key is full
		come(201, "other") // allowed
		come(202, "other") // the limiter's lines are full
		for _, i := range []int{200, 202} {
			if d, done := c.of(i); !done || d.Allowed || d.RetryAfter <= 0 {
				t.Errorf("request %d: %t, %v", i, done, d)
			}
		}
		if _, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "0"}); !errors.Is(err, core.ErrLineFull) {
			t.Errorf("a full line: %v", err)
		}
		for i, want := range []error{nil, core.ErrLineFull} { // a key without a line: the store is asked
			d, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "another"})
			if !errors.Is(err, want) || d.RetryAfter.Round(time.Millisecond) != time.Duration(i)*time.Second {
				t.Errorf("request %d of a key without a line: %v, retry after %v", i, err, d.RetryAfter)
			}
		}
		if got := l.Stats().Waiting; got != 100 {
			t.Errorf("%d wait, want 100", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := l.Stats(); s.Waiting != 0 || s.Allowed != 202 || s.Denied != 4 {
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
		if d, _ := c.of(1); c.at(1) != 0 || d.Allowed || d.Reason != core.ReasonCanceled || !errors.Is(d.Err, context.Canceled) || d.Key() != "k" {
			t.Errorf("a Check whose client has gone: %v, %v", d, d.Err)
		}
		if d, _ := c.of(4); !errors.Is(d.err, context.Canceled) || errors.Is(d.err, core.ErrWaitTooLong) {
			t.Errorf("a Wait whose context was canceled: %v", d.err)
		}
		if got := s.takes.Load() + s.peeks.Load(); got != asks+1 { // by the next head
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
		"MaxWaiters: 1000001: must be from 1 to 1000000, or 0 for 100":                                                                       func(c *core.Config) { c.MaxWaiters = 1_000_001 },
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

// What a request in line would cost no longer counts after it has left.
func TestARequestThatLeavesTheLineShortensIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(2500*time.Millisecond, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}), nil), newCrowd()
		check := func() (core.Decision, error) { return l.Check(&request{}), nil }
		l.Check(&request{})
		c.come(0, check) // the head
		ctx, cancel := context.WithCancel(t.Context())
		c.come(1, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		cancel()
		synctest.Wait()
		c.come(2, check)
		time.Sleep(time.Minute)
		if d, _ := c.of(2); !d.Allowed || d.at != 2*time.Second {
			t.Errorf("%v at %v, want it allowed at 2s", d.Decision, d.at)
		}
	})
}

// After hits came back, a line no longer says when its head meant to ask.
func TestALineThatIsWokenForgetsWhenItsHeadWouldAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(0, core.Limit{Quota: 1, Window: time.Minute, Algorithm: core.FixedWindow})
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		k := core.Hit{Rule: "r", Key: "k"}
		d, err := l.Take(t.Context(), 1, k)
		if err != nil {
			t.Fatal(err)
		}
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 1, k) })
		s.before = func(*core.Batch) { time.Sleep(time.Second) } // the head asks again, and nobody knows the answer yet
		if err := l.Adjust(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // less than two windows
		defer cancel()
		c.come(1, func() (core.Decision, error) { return l.Wait(ctx, 1, k) })
		time.Sleep(2 * time.Minute)
		if d, _ := c.of(1); !d.Allowed {
			t.Errorf("%v: %v", d.Decision, d.err)
		}
	})
}
