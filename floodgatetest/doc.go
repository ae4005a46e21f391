// Package floodgatetest helps programs that use Floodgate to test their limits, key
// functions and hooks. It has a clock that the test moves, a limiter that counts by the
// clock, requests, and assertions that print the decision. To test a store of your own,
// use package core/storetest.
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
// The rule of this example has a limit of 2 requests a minute with [core.FixedWindow].
// With the default, [core.SlidingWindow], a denied request has to wait one microsecond
// longer than the window: advance the clock by the RetryAfter of the decision.
//
// A test of a whole handler does not need this package. In a testing/synctest bubble, the
// counters of a core.Memory follow the bubble's time, and time.Sleep(window) returns at
// once.
package floodgatetest
