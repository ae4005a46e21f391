package floodgatetest

import (
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Clock is a clock that only the test moves. Its methods may be called
// concurrently.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows 2026-01-01 00:00:00 UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
}

// Now returns the clock's time. It is what core.MemoryConfig.Clock wants.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, which may be negative: a server's clock may step
// back too.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// NewLimiter returns a limiter that counts in the process by the clock. The test
// ends with an error if the configuration has one. If c.Store is set, it counts
// there, and the clock must be the store's own.
func NewLimiter(t testing.TB, clock *Clock, c core.Config) *core.Limiter {
	t.Helper()
	if c.Store == nil {
		memory, err := core.NewMemory(core.MemoryConfig{Clock: clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := memory.Close(); err != nil {
				t.Error(err)
			}
		})
		c.Store = memory
	}
	l, err := core.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
