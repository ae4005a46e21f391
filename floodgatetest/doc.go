// Package floodgatetest helps programs that use Floodgate to test their limits,
// key functions and hooks: a clock that a test moves, a request in one line, a
// limiter over both, and assertions that print the decision.
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
// The rules of this example have a limit with [core.FixedWindow]. With the default,
// [core.SlidingWindow], a denied request waits one microsecond longer than the
// window: advance the clock by the RetryAfter of the decision.
//
// A test of a whole handler needs none of this: in a testing/synctest bubble the
// counters of a core.Memory follow the bubble's time, so that time.Sleep passes a
// window at once. Do not use it for stores of your own: package
// core/storetest tests those.
package floodgatetest
