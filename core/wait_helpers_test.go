package core_test

import (
	"context"
	"slices"
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
