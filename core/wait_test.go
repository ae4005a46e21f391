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
	"github.com/floodgate-go/floodgate/internal/hooktest"
)

// asked is a Memory that counts its takes, and calls before and after with each.
type asked struct {
	around
	takes  atomic.Int64
	before func(b *core.Batch)
	after  func(ctx context.Context, b *core.Batch)
}

func newAsked() *asked {
	s := new(asked)
	s.around = around{Store: core.Must(core.NewMemory(core.MemoryConfig{})), do: s.ask}
	return s
}

func (s *asked) ask(ctx context.Context, c core.Counters, b *core.Batch) error {
	if b.Op != core.OpTake {
		return c.Do(ctx, b)
	}
	s.takes.Add(1)
	if s.before != nil {
		s.before(b)
	}
	err := c.Do(ctx, b)
	if s.after != nil {
		s.after(ctx, b)
	}
	return err
}

// patient is a configuration of one rule for the key "k", whose requests wait.
func patient(wait time.Duration, limits ...core.Limit) core.Config {
	c := oneRule(limits...)
	c.MaxWait, c.MaxWaiters = wait, 20_000
	return c
}

// waitedFor is the key of a patient configuration.
var waitedFor = core.Hit{Rule: "r", Key: "k"}

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

// Requests come one after the other, and each is allowed at its instant. Another one comes at each
// instant at which a hit is there: it does not overtake those that wait.
func TestRequestsWaitInOrderAndAreAllowedAtTheirInstants(t *testing.T) {
	perMilli := core.Limit{Quota: 1000, Window: time.Second, Algorithm: core.TokenBucket, Burst: 1}
	for name, ask := range map[string]func(*core.Limiter) (core.Decision, error){
		"Check": func(l *core.Limiter) (core.Decision, error) { return l.Check(&request{}), nil },
		"Wait":  func(l *core.Limiter) (core.Decision, error) { return l.Wait(context.Background(), 1, waitedFor) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const waiting, late = 200, 100
				l, c := newLimiter(t, patient(time.Minute, perMilli), nil), newCrowd()
				for i := range waiting {
					c.come(i, func() (core.Decision, error) { return ask(l) })
				}
				if got := hooktest.Count(l).Waiting; got != waiting-1 {
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
					d, _ := c.of(i)
					if want := time.Duration(i) * time.Millisecond; d.at != want || i < waiting && d.Waited != want || d.err != nil {
						t.Fatalf("request %d was allowed at %v after %v, want %v: %v", i, d.at, d.Waited, want, d.err)
					}
				}
				if s := hooktest.Count(l); s.Allowed != waiting+late || s.Waited != waiting+late-1 || s.Waiting != 0 || s.Denied != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Workers that come again as soon as they are allowed ask the store at most about twice as often
// as they are allowed.
func TestAHerdOfWorkersTakesAsOftenAsItIsAllowed(t *testing.T) {
	hits := []core.Hit{waitedFor, {Rule: "second", Key: "k"}}
	for _, hits := range [][]core.Hit{hits[:1], hits} {
		herd(t, hits...)
	}
}

func herd(t *testing.T, hits ...core.Hit) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newAsked()
		s.before = func(*core.Batch) { time.Sleep(200 * time.Microsecond) }
		config := patient(0, core.PerSecond(10))
		config.Rules = append(config.Rules, core.Rule{Name: "second", Limits: []core.Limit{fixed(30, 3*time.Second)}})
		config.Store = s
		l := newLimiter(t, config, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var allowed atomic.Int64
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for {
					if _, err := l.Wait(ctx, 1, hits...); err != nil {
						return
					}
					allowed.Add(1)
				}
			})
		}
		workers.Wait()
		if n, takes := allowed.Load(), s.takes.Load(); n < 190 || float64(takes) > 2.1*float64(n) {
			t.Errorf("%d keys: %d allowed, %d takes", len(hits), n, takes)
		}
	})
}

func TestAWaitThatIsTooLongIsDeniedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, c := patient(2500*time.Millisecond, fixed(10, time.Second)), newCrowd()
		config.Headers = core.HeadersXEpoch
		l := newLimiter(t, config, nil)
		for i := range 45 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		// 10 at once, 10 after a second, 10 after two, when 10 learn that a third is too long. 5 have three windows before them.
		for i := 40; i < 45; i++ {
			d, done := c.of(i)
			if !done || d.Allowed || d.Reason != core.ReasonOverLimit || d.Waited != 0 || d.RetryAfter != 3*time.Second {
				t.Fatalf("request %d: %t, %v", i, done, d)
			}
			want := core.Header{Name: "X-Ratelimit-Reset", Value: strconv.FormatInt(time.Now().Unix()+3, 10)}
			if lines := d.AppendHeaders(nil); !slices.Contains(lines, want) {
				t.Errorf("%v, want %v", lines, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2900*time.Millisecond)
		defer cancel()
		if d, err := l.Wait(ctx, 1, waitedFor); !errors.Is(err, core.ErrWaitTooLong) || d.Allowed || time.Since(c.begun) != 0 {
			t.Errorf("a context that ends first: %v, %v", d, err)
		}
		if d, err := l.Wait(t.Context(), 11, waitedFor); !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != core.Never || time.Since(c.begun) != 0 {
			t.Errorf("a cost above the quota: %v, %v", d, err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := len(c.allowed()); n != 30 || c.at(29) != 2*time.Second || c.at(19) != time.Second || c.at(39) != 2*time.Second {
			t.Errorf("%d allowed, the last at %v, others denied at %v", n, c.at(29), c.at(39))
		}
	})
}

// A request waits in vain if its key is blocked meanwhile. It is denied when its time is over. The
// decision names the key that it has waited for.
func TestARequestIsDeniedWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, core.Config{MaxWait: 1500 * time.Millisecond, Rules: []core.Rule{
			{Name: "open", Key: static("k"), Limits: []core.Limit{core.PerSecond(9)}},
			{Name: "busy", Key: static("k"), Limits: []core.Limit{fixed(5, time.Second)}},
			{Name: "last", Key: static("k"), Limits: []core.Limit{core.PerSecond(9)}},
		}}, nil), newCrowd()
		busy := core.Hit{Rule: "busy", Key: "k"}
		_, _ = l.Take(t.Context(), 5, busy)
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 5, busy) })
		leaves, leave := context.WithCancel(t.Context())
		ends, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		endsToo, end := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer end()
		for i, ctx := range []context.Context{t.Context(), leaves, ends, endsToo} {
			c.come(1+i, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		}
		_ = l.Block(t.Context(), 5*time.Second, busy)
		time.Sleep(500 * time.Millisecond)
		leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, want := range []struct {
			at     time.Duration
			reason core.Reason
			err    error
		}{{1500 * time.Millisecond, core.ReasonOverLimit, core.ErrWaitTooLong}, {500 * time.Millisecond, core.ReasonCanceled, context.Canceled}, {time.Second, core.ReasonOverLimit, core.ErrWaitTooLong}, {1500 * time.Millisecond, core.ReasonOverLimit, core.ErrWaitTooLong}} {
			d, _ := c.of(1 + i)
			if d.Allowed || d.Reason != want.reason || !errors.Is(d.Err, want.err) || d.at != want.at || d.Waited != want.at || d.Rule() != "busy" ||
				d.RetryAfter <= 0 || d.RetryAfter > 5*time.Second-want.at || !strings.Contains(d.String(), fmt.Sprint("after waiting ", want.at)) {
				t.Errorf("request %d at %v: %v, %v, rule %q, waited %v, retry after %v", 1+i, d.at, d.Reason, d.Err, d.Rule(), d.Waited, d.RetryAfter)
			}
		}
		if d, _ := c.of(0); !d.Allowed || d.at != 5*time.Second {
			t.Errorf("the head: %v at %v", d.Decision, d.at)
		}
	})
}

// A request whose time is over does not overtake the head of its line, which costs more than there is.
func TestARequestWhoseTimeIsOverDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newLimiter(t, patient(3200*time.Millisecond, bucket(4, 4*time.Second)), nil), newCrowd()
		take := func(cost int64) {
			t.Helper()
			if d, err := l.Take(t.Context(), cost, waitedFor); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
		}
		take(4)
		c.come(0, func() (core.Decision, error) { return l.Wait(t.Context(), 2, waitedFor) })
		c.come(1, func() (core.Decision, error) { return l.Check(&request{}), nil })
		for _, wait := range []time.Duration{1900 * time.Millisecond, time.Second} { // others stand in no line
			time.Sleep(wait)
			take(1)
		}
		time.Sleep(time.Minute)
		if d, _ := c.of(1); d.Allowed || d.at != 3200*time.Millisecond || c.at(0) != 4*time.Second {
			t.Errorf("%v at %v, and the head was allowed at %v", d.Decision, d.at, c.at(0))
		}
	})
}

// A request is denied at once if the hits before it need more windows than it has time. This is its
// RetryAfter. The store is not asked.
func TestTheWaitBehindOthersIsReckoned(t *testing.T) {
	tenth := core.Limit{Quota: 10, Window: time.Second, Algorithm: core.TokenBucket} // a hit every 100 ms
	burst := core.Limit{Quota: 20, Window: time.Second, Algorithm: core.TokenBucket, Burst: 10}
	window := fixed(10, time.Second)
	for _, row := range []struct {
		name   string
		limits []core.Limit
		ahead  []int64 // the costs of those before it
		cost   int64
		want   time.Duration
	}{
		{"one before it", []core.Limit{tenth}, []int64{1}, 1, 100 * time.Millisecond},
		{"several hits", []core.Limit{tenth}, []int64{6}, 3, 300 * time.Millisecond},
		{"more than the burst", []core.Limit{burst}, []int64{10, 10}, 4, 700 * time.Millisecond},
		{"in the next window", []core.Limit{window}, []int64{1, 9}, 1, time.Second},
		{"in the one after", []core.Limit{window}, []int64{1, 9, 9}, 1, time.Second},
		{"the longer one of two", []core.Limit{tenth, fixed(10, 5*time.Second)}, []int64{1, 9}, 1, 5 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newAsked()
				s.after = func(_ context.Context, b *core.Batch) { b.Degraded = true }
				config := patient(0, row.limits...)
				config.Store = s
				l, c := newLimiter(t, config, nil), newCrowd()
				_, _ = l.Take(t.Context(), 10, waitedFor)
				for i, cost := range row.ahead {
					c.come(i, func() (core.Decision, error) { return l.Wait(t.Context(), cost, waitedFor) })
				}
				l.Allow(t.Context(), waitedFor) // its working memory is used again
				takes := s.takes.Load()
				short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer end()
				d, err := l.Wait(short, row.cost, waitedFor)
				if !errors.Is(err, core.ErrWaitTooLong) || d.RetryAfter != row.want || d.ResetAfter != row.want || d.MoreAfter != row.want || d.Degraded || d.Waited != 0 || d.Remaining != 0 || s.takes.Load() != takes {
					t.Errorf("%v, %v: a wait of %v after %v and %d takes, want %v at once", d, err, d.RetryAfter, d.Waited, s.takes.Load()-takes, row.want)
				}
				time.Sleep(time.Minute)
			})
		})
	}
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
			if come(i, strconv.Itoa(i/2)); i == 1 {
				come(200, "0") // the line of its key is full
			}
		}
		come(201, "other") // allowed
		come(202, "other") // the limiter's lines are full
		for _, i := range []int{200, 202} {
			if d, done := c.of(i); !done || d.Allowed || d.RetryAfter.Round(time.Millisecond) != time.Second || !errors.Is(d.Err, core.ErrLineFull) {
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
		if got := hooktest.Count(l).Waiting; got != 100 {
			t.Errorf("%d wait, want 100", got)
		}
		time.Sleep(10 * time.Second)
		come(203, "other")
		come(204, "other") // there is room again
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s := hooktest.Count(l); s.Waiting != 0 || s.Allowed != 204 || s.Denied != 4 {
			t.Errorf("%+v", s)
		}
		config.MaxWaiters = 0 // 100
		l, c = newLimiter(t, config, nil), newCrowd()
		for i := range 102 {
			c.come(i, func() (core.Decision, error) { return l.Wait(context.Background(), 1, waitedFor) })
		}
		if d, _ := c.of(101); !errors.Is(d.err, core.ErrLineFull) || hooktest.Count(l).Waiting != 100 {
			t.Errorf("%v, %d wait", d.err, hooktest.Count(l).Waiting)
		}
		time.Sleep(5 * time.Minute)
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
				return l.Wait(ctx, 1, waitedFor)
			})
		}
		takes := s.takes.Load()
		cancels[1]() // the head, a Check
		cancels[4]() // in the line, a Wait
		synctest.Wait()
		if d, _ := c.of(1); d.at != 0 || d.Allowed || d.Reason != core.ReasonCanceled || !errors.Is(d.Err, context.Canceled) {
			t.Errorf("a Check whose client has gone: %v, %v", d, d.Err)
		}
		if d, _ := c.of(4); !errors.Is(d.err, context.Canceled) || errors.Is(d.err, core.ErrWaitTooLong) || d.Reason != core.ReasonCanceled || !errors.Is(d.Err, context.Canceled) {
			t.Errorf("a Wait whose context was canceled: %v, %v, %v", d.err, d.Reason, d.Err)
		}
		if got := s.takes.Load(); got != takes+1 { // by the next head
			t.Errorf("the store was asked %d times because clients went away", got-takes)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(c.allowed()); got != "[0 2 3 5]" || c.at(5) > 6*time.Second {
			t.Errorf("allowed %s, the last at %v", got, c.at(5))
		}
		if d, _ := l.Peek(t.Context(), 1, waitedFor); !d.Allowed {
			t.Errorf("charged: %v", d)
		}
		for _, cancel := range cancels {
			cancel()
		}
	})
}

// The hits of a request that has left its line make nobody wait.
func TestARequestThatLeavesTheLineShortensIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, c := patient(2500*time.Millisecond, bucket(10, time.Second)), newCrowd()
		config.Rules[0].Cost = costs(10)
		l := newLimiter(t, config, nil)
		ctx, cancel := context.WithCancel(t.Context())
		for i, ctx := range []context.Context{t.Context(), t.Context(), ctx, ctx} {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{ctx: ctx}), nil })
		}
		cancel()
		synctest.Wait()
		c.come(4, func() (core.Decision, error) { return l.Check(&request{}), nil })
		time.Sleep(time.Minute)
		if d, _ := c.of(4); !d.Allowed || d.at != 2*time.Second {
			t.Errorf("%v at %v, want it allowed at 2s", d.Decision, d.at)
		}
	})
}

// A worker whose context has ended gets nothing, also if a hit is free.
func TestAWaitWhoseContextHasEndedIsChargedNothing(t *testing.T) {
	l := newLimiter(t, patient(time.Minute, core.PerSecond(1)), nil)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	for _, ctx := range []context.Context{canceled, late} {
		d, err := l.Wait(ctx, 1, waitedFor)
		if d.Allowed || d.Waited != 0 || errors.Is(err, context.Canceled) != (ctx == canceled) || errors.Is(err, core.ErrWaitTooLong) != (ctx == late) || !strings.Contains(err.Error(), `rule "r"`) {
			t.Errorf("%v, %v", d, err)
		}
	}
	if d, err := l.Wait(t.Context(), 1, waitedFor); err != nil || d.Remaining != 0 {
		t.Errorf("%v, %v", d, err)
	}
	if n := hooktest.Count(l).Waiting; n != 0 {
		t.Errorf("%d wait", n)
	}
}

func TestADryRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := patient(time.Minute, core.PerSecond(1))
		config.DryRun = true
		l := newLimiter(t, config, nil)
		for range 3 {
			if d := l.Check(&request{}); !d.Allowed || d.Waited != 0 {
				t.Errorf("%v", d)
			}
			if d, err := l.Wait(t.Context(), 1, waitedFor); !d.Allowed || d.Waited != 0 || d.Cost != 1 || err != nil {
				t.Errorf("%v, %v", d, err)
			}
		}
	})
}

// A request asks again after a millisecond if the store denies it and names no wait.
func TestAStoreThatNamesNoWaitIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newAsked()
		store.after = func(_ context.Context, b *core.Batch) { b.Items[0].Results[0].RetryAfter = 0 }
		config := patient(time.Minute, bucket(1, 10*time.Millisecond))
		config.Store = store
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		time.Sleep(time.Second)
		if d, _ := c.of(1); !d.Allowed || d.at != 10*time.Millisecond || store.takes.Load() != 12 {
			t.Errorf("%v at %v after %d takes, want 12", d.Decision, d.at, store.takes.Load())
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
		if panicked != 1 || len(c.allowed()) != 3 || c.allowed()[1] != 2 || c.allowed()[2] != 3 || hooktest.Count(l).Waiting != 0 {
			t.Errorf("%d panics, %v allowed, %+v", panicked, c.allowed(), hooktest.Count(l))
		}
	})
}

// The store fails while requests wait: each of them learns it at its turn, and the log says so.
func TestRequestsInLineLearnThatTheStoreHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := newAsked(), &lines{}
		config := patient(time.Minute, core.PerSecond(1))
		config.Store, config.Log = s, log.logger()
		l, c := newLimiter(t, config, nil), newCrowd()
		for i := range 2 {
			c.come(i, func() (core.Decision, error) { return l.Check(&request{}), nil })
		}
		c.come(2, func() (core.Decision, error) { return l.Wait(context.Background(), 1, waitedFor) })
		if err := s.Store.(*core.Memory).Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, i := range []int{1, 2} {
			if d, _ := c.of(i); d.Reason != core.ReasonFailed || !errors.Is(d.Err, core.ErrClosed) || d.Waited <= 0 {
				t.Errorf("request %d: %v, %v", i, d, d.Err)
			}
		}
		if d, _ := c.of(2); !errors.Is(d.err, core.ErrClosed) {
			t.Errorf("Wait: %v", d.err)
		}
		if text := strings.Join(log.take(), "\n"); !strings.Contains(text, "the store failed") {
			t.Errorf("the log has %q", text)
		}
		time.Sleep(time.Minute)
		if _, err := l.Wait(t.Context(), 1, waitedFor); !errors.Is(err, core.ErrClosed) || !strings.Contains(strings.Join(log.take(), "\n"), "operation=wait") {
			t.Errorf("%v", err)
		}
	})
}
