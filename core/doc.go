// Package core decides whether a request, or anything else that can be counted, is within its
// limits. It knows no framework: the packages below adapters wrap it.
//
//	limiter, err := core.New(core.Config{
//		Name: "api",
//		Rules: []core.Rule{
//			{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{core.PerSecond(10), core.PerHour(240)}},
//			{Name: "user", Key: keyfuncs.User(currentUser), Limits: []core.Limit{core.PerHour(1000)}},
//		},
//	})
//
// # The model
//
// A [Limit] is a quota of hits for a window of time, counted by an algorithm. A [Rule] is a key
// function and the limits of each key. A [Limiter] has rules, a store and hooks. For each request it
// calls the key functions and charges all limits of all keys in one step, or none. The result is a
// [Decision].
//
// Adapters call Check, Deny and Settle of a [Checker]. A program without requests calls:
//
//	Take, Allow       charge hits, or deny them at once
//	Wait              charge hits when it is their turn
//	Adjust            settle a charge to the actual cost; 0 refunds it
//	Peek              read the counters without a charge
//	Block, Grant      deny a key for a time, or give hits back to it
//	Reset, ResetAll   forget a key, or all keys
//
// Package github.com/floodgate-go/floodgate/inflight limits how many requests run at a time.
//
// # The algorithms
//
// Times are whole microseconds. A hit leaves a window when it is Window old.
// With L the quota, B the burst and W the window:
//
//	algorithm         state per key        most hits in any window of length W
//	                                       one clock   clocks that differ
//	sliding_window    16 bytes             2 L         3 L
//	fixed_window      16 bytes             2 L         3 L
//	  with a Lockout  24 bytes             see Limit.WorstCase
//	bucketed_window   W/Precision counts   L           2 L
//	sliding_log       L times              L           2 L
//	token_bucket      16 bytes             B + L       B + 2 L
//
// The last column is for processes that share a store and whose clocks differ by less than W. If a
// counter is W or more ahead of the clock, it is set to the clock: after a clock step, a key is
// denied for at most W longer.
//
// Without other hits, RetryAfter is exact to the microsecond. A request over a limit changes nothing.
//
// # Stores
//
// [Memory] counts in the process. Other stores are in packages below stores. Your own [Store] must
// pass core/storetest. If a server can compare and swap, package stores/swapstore makes a Store of
// it. If a store fails, the answer is 503: see [ReasonFailed].
package core

// Read the files in this order: limit, config, request and hooks (what a program writes); limiter,
// check and session (the decision); decision, headers and denial (the result); settle (after the
// handler); wait; store and memory. A snapshot is one configuration of a limiter.
