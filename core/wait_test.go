package core_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
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
	return core.Config{MaxWait: wait, MaxWaiters: 20_000, MaxWaitersTotal: 20_000,
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
		for i, want := range []error{nil, core.ErrLineFull} { // a key without a line: the store is asked
			d, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "c"})
			if !errors.Is(err, want) || d.RetryAfter.Round(time.Millisecond) != time.Duration(i)*time.Second {
				t.Errorf("request %d of a third key: %v, retry after %v", i, err, d.RetryAfter)
			}
		}
		if got := l.Stats().Waiting; got != 5 {
			t.Errorf("%d wait, want 5", got)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := l.Stats(); s.Waiting != 0 || s.Allowed != 8 || s.Denied != 4 {
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

// forgiving is a configuration whose requests wait. They cost two hits of two, and the handler may say that it
// was less.
func forgiving() core.Config {
	config := patient(time.Minute, core.Limit{Quota: 2, Window: time.Minute, Algorithm: core.FixedWindow})
	rule := &config.Rules[0]
	rule.Cost = func(core.Request) (int64, error) { return 2, nil }
	rule.Counts = func(_ core.Request, o core.Outcome) bool { return o.Status != http.StatusNotFound }
	rule.Clears = func(_ core.Request, o core.Outcome) bool { return o.Status == http.StatusNoContent }
	return config
}

// A key gets hits back while requests wait for it: they get their turn at once.
func TestWhatIsGivenBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newLimiter(t, forgiving(), nil), newCrowd()
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
				if n := l.Stats().Waiting; n != 2 || !first.Allowed {
					t.Fatalf("%d requests wait, %v", n, first)
				}
				time.Sleep(time.Second)
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
		if name == "Block" || name == "ResetAll" {
			continue // the store of this test can do neither
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, config := newAsked(), forgiving()
				config.Store = s
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				s.after = func(ctx context.Context, b *core.Batch) {
					if !b.Allowed {
						s.after = nil
						if err := giveBack(ctx, l, first); err != nil {
							t.Error(err)
						}
					}
				}
				if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 || s.takes.Load() != 3 {
					t.Errorf("%v after %v, %d takes", d, d.Waited(), s.takes.Load())
				}
			})
		})
	}
}

// A store takes its time to give hits back: the requests that wait get their turn once it has done so, and
// not before, when they would find nothing.
func TestWhatASlowStoreGivesBackEndsAWait(t *testing.T) {
	for name, giveBack := range givesBack {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow, config, c := false, forgiving(), newCrowd()
				config.Store = &around{core.Must(core.NewMemory(core.MemoryConfig{})), func(ctx context.Context, c core.Counters, b *core.Batch) error {
					if slow && b.Op&(core.OpTake|core.OpPeek|core.OpCharge) == 0 {
						time.Sleep(time.Second)
					}
					return c.Do(ctx, b)
				}}
				l := newLimiter(t, config, nil)
				first := l.Check(&request{})
				if name == "Block" {
					_ = l.Reset(t.Context(), waitedFor)
					_ = l.Block(t.Context(), time.Minute, waitedFor)
				}
				for i := range 2 {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				}
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

// The head of a line goes away, and what it has found holds no longer, or was of a store that is
// away: the next one asks at once.
func TestTheNextHeadDoesNotTrustWhatHoldsNoLonger(t *testing.T) {
	for _, name := range []string{"Reset", "Degraded"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := forgiving()
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				if name == "Reset" {
					l.Check(&request{})
				} else {
					s.after = func(_ context.Context, b *core.Batch) {
						s.after = nil
						b.Allowed, b.Degraded = false, true
						b.Items[0].Results[0] = core.Result{ResetAfter: time.Minute, MoreAfter: time.Minute, RetryAfter: time.Minute}
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				c.come(0, func() (core.Decision, error) { return l.Wait(ctx, 1, waitedFor) })
				c.come(1, func() (core.Decision, error) { return l.Wait(t.Context(), 1, waitedFor) })
				if n := l.Stats().Waiting; n != 2 {
					t.Fatalf("%d requests wait", n)
				}
				time.Sleep(time.Second)
				cancel()
				if name == "Reset" {
					if err := l.Reset(t.Context(), waitedFor); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if d, done := c.of(1); !done || !d.Allowed || d.at != time.Second {
					t.Errorf("%t, %v at %v", done, d.Decision, d.at)
				}
			})
		})
	}
}

// What a store says of one take is not said of the next one.
func TestTheFlagsOfATakeEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		config := patient(time.Minute, core.Limit{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow})
		config.Store = s
		config.Rules = append(config.Rules, core.Rule{Name: "other", Key: static("k"), Limits: []core.Limit{core.PerHour(5)}})
		l := newLimiter(t, config, nil)
		l.Check(&request{})
		s.before = func(b *core.Batch) {
			if b.Degraded || b.Cached || b.Items[1].Unknown {
				t.Errorf("asked with degraded %t, cached %t, unknown %t", b.Degraded, b.Cached, b.Items[1].Unknown)
			}
		}
		s.after = func(_ context.Context, b *core.Batch) {
			s.after = nil
			b.Degraded, b.Cached, b.Items[1].Unknown = true, true, true
		}
		if d := l.Check(&request{}); !d.Allowed || d.Waited() == 0 || d.Degraded {
			t.Errorf("%v after %v, degraded %t", d, d.Waited(), d.Degraded)
		}
	})
}

// A head whose store panics leaves the line to the next one.
func TestAHeadThatPanicsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		s.before = func(*core.Batch) {
			if s.takes.Load() == 3 { // the first of a head
				panic("the store")
			}
		}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store = s
		l, c := newLimiter(t, config, nil), newCrowd()
		panicked := 0
		for i := range 4 {
			c.come(i, func() (d core.Decision, err error) {
				defer func() {
					if recover() != nil {
						panicked++
					}
				}()
				return l.Check(&request{}), nil
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if panicked != 1 || len(c.allowed()) != 3 || c.allowed()[1] != 2 || c.allowed()[2] != 3 || l.Stats().Waiting != 0 {
			t.Errorf("%d panics, %v allowed, %+v", panicked, c.allowed(), l.Stats())
		}
	})
}

// The store fails while requests wait: each of them learns it at its turn.
func TestRequestsInLineLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newAsked(), &lines{}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 3 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		c.come(3, func() (core.Decision, error) {
			return l.Wait(context.Background(), 1, core.Hit{Rule: "r", Key: "k"})
		})
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, i := range []int{1, 2, 3} {
			if d, _ := c.of(i); d.Reason != core.ReasonFailed || !errors.Is(d.Err, core.ErrClosed) || d.Waited() <= 0 {
				t.Errorf("request %d: %v, %v", i, d, d.Err)
			}
		}
		if d, _ := c.of(3); !errors.Is(d.err, core.ErrClosed) {
			t.Errorf("Wait: %v", d.err)
		}
	})
}

// The rules that deny decide whether a request waits, and how long.
func TestARuleHasAMaxWaitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, core.Config{MaxWait: time.Second, Rules: []core.Rule{
			{Name: "short", Key: methodKey("short"), Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "long", Key: methodKey("long"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}, MaxWait: time.Minute},
			{Name: "other", Key: methodKey("other"), Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil)
		for range 2 {
			for _, row := range []struct {
				key     string
				allowed bool
			}{{"long", true}, {"other", false}} {
				l.Check(&request{method: row.key})
				begun := time.Now()
				d := l.Check(&request{method: row.key})
				if d.Allowed != row.allowed || d.Waited() != time.Since(begun) || !row.allowed && d.Waited() != 0 {
					t.Errorf("%s: %v after %v", row.key, d, time.Since(begun))
				}
			}
			time.Sleep(time.Minute)
		}
	})
}

// methodKey applies to requests of a method.
func methodKey(method string) core.KeyFunc {
	return func(dst []byte, r core.Request) ([]byte, error) {
		if r.Method() != method {
			return dst, core.SkipRule
		}
		return append(dst, "k"...), nil
	}
}

// A request that is denied by a second key goes to that key's line, and holds nobody up in
// the line that it leaves.
func TestARequestWithTwoKeysHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Limits: []core.Limit{{Quota: 1, Window: time.Second, Algorithm: core.FixedWindow}}},
			{Name: "user", Limits: []core.Limit{{Quota: 1, Window: 10 * time.Second, Algorithm: core.FixedWindow}}},
		}}, nil), newCrowd()
		wait := func(i int, hits ...core.Hit) {
			c.come(i, func() (core.Decision, error) { return l.Wait(context.Background(), 1, hits...) })
		}
		ip := func(k string) core.Hit { return core.Hit{Rule: "ip", Key: k} }
		user := func(k string) core.Hit { return core.Hit{Rule: "user", Key: k} }
		wait(0, user("u"))
		wait(1, ip("a"))
		wait(2, ip("a"), user("u")) // waits for the user
		wait(3, ip("a"))
		wait(4, ip("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, want := range []time.Duration{0, 0, 10 * time.Second, time.Second, 2 * time.Second} {
			if d, _ := c.of(i); d.at != want || d.err != nil {
				t.Errorf("request %d was allowed at %v, want %v: %v", i, d.at, want, d.err)
			}
		}
	})
}

// A dry run makes nobody wait.
func TestADryRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.DryRun = true
		l := newLimiter(t, config, nil)
		for range 3 {
			if d := l.Check(&request{}); !d.Allowed || d.Waited() != 0 {
				t.Errorf("%v", d)
			}
			if d, err := l.Wait(t.Context(), 1, core.Hit{Rule: "r", Key: "k"}); !d.Allowed || d.Waited() != 0 || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		}
	})
}

// lateContext has a deadline, and ends a little later, as the runtime's timers do.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// The deadline of a request passes while it waits: its decision says so, also if its context has not
// noticed yet. If the request is denied at once, its time is not over.
func TestADeadlineThatPassesInLineIsTheErrorOfTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, patient(time.Minute, core.InFlight(1), core.PerHour(2)), nil)
		first := l.Check(&request{})
		late, cancel := context.WithTimeout(t.Context(), 51*time.Millisecond)
		defer cancel()
		ctx := lateContext{late, time.Now().Add(50 * time.Millisecond)}
		if d := l.Check(&request{ctx: ctx}); d.Allowed || !errors.Is(d.Err, context.DeadlineExceeded) || d.Waited() != 50*time.Millisecond {
			t.Errorf("%v, %v after %v", d, d.Err, d.Waited())
		}
		l.Settle(&request{}, first, core.Outcome{Status: 200})
		second := l.Check(&request{})
		l.Settle(&request{}, second, core.Outcome{Status: 200})
		ctx.deadline = time.Now().Add(time.Second)
		if d := l.Check(&request{ctx: lateContext{t.Context(), ctx.deadline}}); d.Allowed || d.Err != nil || d.Waited() != 0 {
			t.Errorf("%v, %v after %v", d, d.Err, d.Waited())
		}
	})
}

// A Wait logs that the store has failed, and nothing else.
func TestAWaitLogsThatTheStoreHasFailed(t *testing.T) {
	var log bytes.Buffer
	s := newAsked()
	l := core.Must(core.New(core.Config{Name: "api", Store: s, Log: slog.New(slog.NewTextHandler(&log, nil)), Rules: []core.Rule{
		{Name: "r", Limits: []core.Limit{core.PerHour(5)}},
	}}))
	hit := core.Hit{Rule: "r", Key: "k"}
	if _, err := l.Wait(t.Context(), 1, hit); err != nil || log.Len() > 0 {
		t.Errorf("error %v, and the log says %s", err, &log)
	}
	gone := errors.New("gone")
	s.fail = func(context.Context) error { return gone }
	if _, err := l.Wait(t.Context(), 1, hit); !errors.Is(err, gone) || !bytes.Contains(log.Bytes(), []byte("operation=wait")) {
		t.Errorf("error %v, and the log says %q", err, &log)
	}
}

// As golang.org/x/time/rate does: a worker whose context has ended gets nothing, also if a hit is free.
func TestAWaitWhoseContextHasEndedIsChargedNothing(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil)
	hit := core.Hit{Rule: "r", Key: "k"}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for ctx, text := range map[context.Context]string{
		canceled: `limiter "default", rule "r": context canceled`,
		late:     `limiter "default", rule "r": floodgate: the wait is too long: context deadline exceeded`,
	} {
		d, err := l.Wait(ctx, 1, hit)
		if d.Allowed || d.Waited() != 0 || !errors.Is(err, ctx.Err()) || errors.Is(err, core.ErrWaitTooLong) != (ctx == late) || err.Error() != text {
			t.Errorf("%v, %v", d, err)
		}
	}
	if d, err := l.Wait(t.Context(), 1, hit); err != nil || d.Remaining != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if n := l.Stats().Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}

// Reconfigure leaves requests in line: each is decided by the configuration with which it
// began, and later requests stand behind it.
func TestReconfigureWhileRequestsWait(t *testing.T) {
	for _, quota := range []int64{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			l, c := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil), newCrowd()
			come := func(i int) {
				c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
			}
			for i := range 3 {
				come(i)
			}
			if err := l.Reconfigure(patient(30*time.Second, core.PerSecond(quota))); err != nil {
				t.Fatal(err)
			}
			for i := 3; i < 6; i++ {
				come(i)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			c.inOrder(t, 6)
			if d, _ := c.of(2); d.Limit().Quota != 1 {
				t.Errorf("a request that waited was decided with the quota %d", d.Limit().Quota)
			}
			if d, _ := c.of(3); d.Limit().Quota != quota {
				t.Errorf("a later request was decided with the quota %d, want %d", d.Limit().Quota, quota)
			}
		})
	}
}

// A released slot wakes the head, whatever its configuration is.
func TestReconfigureWhileRequestsWaitForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(time.Minute, core.InFlight(1)), nil), newCrowd()
		first := l.Check(&request{})
		come := func(i int) {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		come(0)
		if err := l.Reconfigure(patient(time.Minute, core.InFlight(2))); err != nil {
			t.Fatal(err)
		}
		come(1)
		come(2)
		l.Settle(&request{}, first, core.Outcome{})
		synctest.Wait()
		if got := c.allowed(); !slices.Equal(got, []int{0, 1}) || c.at(1) != 0 {
			t.Fatalf("%v are allowed when a slot is free", got)
		}
		d, _ := c.of(0)
		l.Settle(&request{}, d.Decision, core.Outcome{})
		synctest.Wait()
		if got := c.allowed(); !slices.Equal(got, []int{0, 1, 2}) || c.at(2) != 0 {
			t.Fatalf("%v are allowed when a slot is free", got)
		}
	})
}

// A request whose key is in the body waits too. If a rule without MaxWait denies it, the body is
// not read.
func TestRequestsThatNeedTheirBodyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		field := func(dst []byte, r core.Request) ([]byte, error) {
			b, err := r.Body(10)
			return append(dst, b...), err
		}
		l := newLimiter(t, core.Config{MaxWait: 3 * time.Second, Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{{Quota: 1, Window: 2 * time.Second, Algorithm: core.FixedWindow}}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}},
		}}, nil)
		for i := range 2 {
			r := &request{body: "alice"}
			if d := l.Check(r); !d.Allowed || d.Waited() != time.Duration(i)*2*time.Second || r.reads == 0 {
				t.Errorf("%v after %v, body read %d times", d, d.Waited(), r.reads)
			}
		}
		l = newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "ip", Key: static("k"), Limits: []core.Limit{core.PerHour(1)}},
			{Name: "name", Key: field, Limits: []core.Limit{core.PerHour(100)}, MaxWait: time.Minute},
		}}, nil)
		l.Check(&request{body: "alice"})
		r := &request{body: "alice"}
		if d := l.Check(r); d.Allowed || d.Waited() != 0 || r.reads != 0 {
			t.Errorf("%v after %v, body read %d times", d, d.Waited(), r.reads)
		}
	})
}

// A request that is denied in line is told a lower bound of the wait: until the head asks, and
// then the windows that the hits before it need. The store is not asked.
func TestTheWaitBehindOthersIsReckoned(t *testing.T) {
	tenth := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket} // a hit every 100 ms
	burst := core.Limit{Quota: 20, Window: time.Second, Algorithm: core.TokenBucket, Burst: 10}
	fixed := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.FixedWindow}
	for _, row := range []struct {
		name   string
		limits []core.Limit
		ahead  []int64 // the costs of those before it
		cost   int64
		want   time.Duration
	}{
		{"one before it", []core.Limit{tenth}, []int64{1}, 1, 200 * time.Millisecond},
		{"several hits", []core.Limit{tenth}, []int64{6}, 3, 900 * time.Millisecond},
		{"more than the quota", []core.Limit{tenth}, []int64{10, 2}, 4, 1600 * time.Millisecond},
		{"more than the burst", []core.Limit{burst}, []int64{10, 10}, 4, 1200 * time.Millisecond},
		{"in the same window", []core.Limit{fixed}, []int64{1, 8}, 1, time.Second},
		{"in the next window", []core.Limit{fixed}, []int64{1, 9}, 1, 2 * time.Second},
		{"the longer one of two", []core.Limit{tenth, fixed}, []int64{1, 1, 1}, 1, 1300 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				config := patient(0, row.limits...)
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				if d, err := l.Take(t.Context(), 10, waitedFor); err != nil || !d.Allowed {
					t.Fatal(d, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				for i, cost := range row.ahead {
					c.come(i, func() (core.Decision, error) { return l.Wait(ctx, cost, waitedFor) })
				}
				takes := s.takes.Load()
				short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer end()
				d, err := l.Wait(short, row.cost, waitedFor)
				if !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != row.want || d.Waited() != 0 || d.Remaining != 0 {
					t.Errorf("%v, %v: a wait of %v after %v, want %v at once", d, err, d.RetryAfter, d.Waited(), row.want)
				}
				if s.takes.Load() != takes || s.peeks.Load() != 0 {
					t.Errorf("%d takes and %d peeks", s.takes.Load()-takes, s.peeks.Load())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A request that costs more than a quota stands in no line.
func TestARequestThatNoWaitHelpsIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{Rules: []core.Rule{
			{Name: "all", Key: static("k"), MaxWait: time.Minute, Limits: []core.Limit{core.PerSecond(1)}},
			{Name: "banned", Key: methodKey("POST"), Limits: []core.Limit{core.PerSecond(0)}},
		}}, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		if d := l.Check(&request{method: "POST"}); d.Allowed || d.Rule() != "banned" || d.RetryAfter != core.Never || d.Waited() != 0 {
			t.Errorf("%v of rule %q", d, d.Rule())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		c.inOrder(t, 2)
	})
}
