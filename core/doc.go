// Package core decides whether a request, or anything else that can be counted,
// is within its limits. It knows no web framework; the packages below adapters
// wrap it for net/http and others.
//
// # The model
//
// A [Limit] is a quota of hits for a window of time, counted by an
// algorithm; or it is the most requests that may run at a time ([InFlight]). A [Rule] is a key function and the limits that apply to each of
// its keys. A [Limiter] is rules, a store and hooks: for each request it asks
// the rules for their keys, and takes from all counters in one step: all limits
// of all keys are charged, or none of them.
//
//	limiter, err := core.New(core.Config{
//		Name: "api",
//		Rules: []core.Rule{
//			{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
//			{Name: "user", Key: keyfuncs.User(currentUser), Limits: []core.Limit{core.PerHour(1000)}},
//		},
//	})
//
// A [Decision] is its result, with all that a response header or an audit log
// needs. Adapters call Check, Deny and Settle (see [Checker]). A program without
// requests calls:
//
//	Take, Allow       charge hits, or deny them at once
//	Wait              charge hits when it is their turn
//	Acquire           take a slot of a limit in flight, until it is released
//	Adjust            settle a charge to the actual cost; 0 gives it back
//	Peek              look, without a charge
//	Block, Grant      deny a key for a time, or give it extra hits
//	Reset, ResetAll   forget a key, or all keys
//
// [Rule.Quota] gives each customer a quota of its own, [Rule.Cost] and
// [Decision.SetCost] charge what a request has really cost, Config.MaxWait makes
// requests wait in place of denying them, and Config.Observer is told of every
// decision.
//
// # The algorithms
//
// Times are whole microseconds and counts whole numbers. Only the floor of a
// formula rounds. A window is half open: a hit of age Window no
// longer counts. With L the quota, B the burst and W the window:
//
//	algorithm         state per key        most hits in any window of length W
//	                                       one clock   clocks that differ
//	sliding_window    16 bytes             2 L         3 L
//	fixed_window      16 bytes             2 L         3 L
//	  with a Zone     16 bytes             2 L         3 L
//	  with a Lockout  24 bytes             as WorstCase says
//	bucketed_window   W/Precision counts   L           2 L
//	sliding_log       L times              L           2 L
//	token_bucket      16 bytes             B + L       B + 2 L
//
// A limit in flight (in_flight, [Leases]) has no window: it keeps 24 bytes for each
// request that runs.
//
// The last column is for processes that share a store and whose clocks differ by
// less than W. In a window of length W less that difference, the column before it
// holds. A stored time less than W ahead of a clock is believed: the decision is
// made at the stored time. One further ahead can only be due to a step of a clock
// and is moved back to now, so that no step denies a key for longer than W more.
//
// [Limit.WorstCase] and [Limit.Lifetime] give the same as numbers. RetryAfter is exact for all of
// them: a request is denied a microsecond earlier, and allowed then, if no other
// hits come. Denied requests change nothing.
//
// # Stores
//
// [Memory] counts in the process. Another [Store] passes core/storetest;
// package stores/swapstore makes one of anything that can compare and swap.
//
// A store's error is a decision too: not Allowed, with [ReasonFailed], which
// answers 503.
package core
