package hooktest

import (
	"context"
	"sync"
	"testing"

	"github.com/floodgate-go/floodgate/core"
)

// Numbers are how many decisions of each kind an observer has seen, and how many requests are in line.
type Numbers struct {
	Allowed, Denied, DryRun, Skipped, BadRequests, Failed, Canceled, Degraded, Waited uint64

	Waiting int
}

// Counter is a core.Observer that counts.
type Counter struct {
	mu sync.Mutex
	n  Numbers
}

// Observe implements core.Observer.
func (c *Counter) Observe(string, []core.Rule) core.ObserverFuncs {
	return core.ObserverFuncs{
		Decided: func(_ context.Context, d core.Decision, _, _ int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			n := map[core.Reason]*uint64{
				core.ReasonWithinLimits: &c.n.Allowed, core.ReasonNoRule: &c.n.Allowed, core.ReasonOverLimit: &c.n.Denied, core.ReasonSkipped: &c.n.Skipped,
				core.ReasonBadRequest: &c.n.BadRequests, core.ReasonFailed: &c.n.Failed, core.ReasonCanceled: &c.n.Canceled,
			}[d.Reason]
			if d.DryRun {
				n = &c.n.DryRun
			}
			*n++
			if d.Degraded {
				c.n.Degraded++
			}
			if d.Waited > 0 {
				c.n.Waited++
			}
		},
		Queued: func(_ context.Context, _ int, change int64) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.n.Waiting += int(change)
		},
	}
}

// Read returns the numbers.
func (c *Counter) Read() Numbers {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

var counters sync.Map // of each limiter of New: its *Counter

// New makes a limiter whose decisions are counted, unless it has an observer.
func New(t testing.TB, c core.Config) *core.Limiter {
	t.Helper()
	counter := new(Counter)
	if c.Observer == nil {
		c.Observer = counter
	}
	l, err := core.New(c)
	if err != nil {
		t.Fatal(err)
	}
	counters.Store(l, counter)
	return l
}

// Count returns the numbers of a limiter that New has made.
func Count(l *core.Limiter) Numbers {
	counter, _ := counters.Load(l)
	return counter.(*Counter).Read()
}
