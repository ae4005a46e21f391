// Package floodgatetest helps programs that use Floodgate to test their limits, key functions and
// hooks. It has a clock that the test moves, a limiter that counts by the clock, requests, and
// assertions that print the decision. To test a store of your own, use package core/storetest.
//
//	func TestThirdRequestIsDenied(t *testing.T) {
//		clock := floodgatetest.NewClock()
//		limiter := floodgatetest.NewLimiter(t, clock, core.Config{Rules: rules})
//		r := floodgatetest.NewRequest("POST", "/comments", floodgatetest.Header("X-Api-Key", "k1"))
//		floodgatetest.WantAllowed(t, limiter.Check(r))
//		floodgatetest.WantAllowed(t, limiter.Check(r))
//		floodgatetest.WantDenied(t, limiter.Check(r), time.Minute)
//		clock.Advance(time.Minute)
//		floodgatetest.WantAllowed(t, limiter.Check(r))
//	}
//
// The rule of this example has a limit of 2 requests a minute with [core.FixedWindow]. With the
// default, [core.SlidingWindow], a denied request has to wait one microsecond longer than the
// window: advance the clock by the RetryAfter of the decision.
//
// A test of a whole handler does not need this package. In a testing/synctest bubble, the counters
// of a core.Memory follow the bubble's time, and time.Sleep(window) returns at once.
package floodgatetest

import (
	"sync"
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/core"
)

// Clock is a clock that only the test moves. [NewClock] makes it. Its methods may be called
// concurrently.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock whose time is 2026-01-01 00:00:00 UTC.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
}

// Now returns the clock's time. Pass it as core.MemoryConfig.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d. d may be negative, to test a step back of a server's clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set moves the clock to t. t may be before the clock's time.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// NewLimiter returns a limiter with the configuration c. It ends the test with t.Fatal if the
// configuration is invalid. If c.Store is nil, the limiter counts in a core.Memory with the clock.
// If c.Store is set, the limiter counts in that store, and the clock is not used: give the store
// the same clock.
func NewLimiter(t testing.TB, clock *Clock, c core.Config) *core.Limiter {
	t.Helper()
	if c.Store == nil {
		c.Store = core.Must(core.NewMemory(core.MemoryConfig{Clock: clock.Now}))
	}
	l, err := core.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
