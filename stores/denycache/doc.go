// Package denycache remembers denials in the process: a key that a shared store
// has denied is denied again without asking the store, for a second at most. A
// flood from a client that is over its limit then costs the store about one
// command a second, however many requests the flood has.
//
// redisstore and memcachedstore have it built in and on. For another store:
//
//	store, err := denycache.New(shared, denycache.Config{})
//
// Do not use it for counters in the process: they are faster than the cache.
//
// # What stays exact
//
// While a key is denied nothing is charged to it, so RetryAfter and ResetAfter
// only grow shorter. A request is let through to the store when its wait is
// over, not later. A request of another cost has another wait: the store is
// asked for it, and its denial is remembered beside the first. If that request is
// admitted, the key's other denials are forgotten: their waits have changed.
//
// A denial is remembered only if it lasts. What a store has denied that takes
// several items one by one (core.Traits.OneStep) may be due to hits that are
// given back a moment later: such a denial is remembered only if it is of a single
// item. What a fallback has denied (core.Batch.Degraded) is not remembered.
//
// # What is late
//
//   - A Reset or Refund by another process takes effect in this one after a
//     second at most (Config.Longest). No message has to arrive for that: the
//     store is asked again. One caller asks when nine tenths of the time are over,
//     and the others are denied meanwhile. A Reset or Refund through this Store
//     takes effect at once.
//   - Remaining is that of the denial: it may have grown since.
//
// If one of several keys is known to be denied, the others are not looked at:
// core.Item.Unknown is set for them, and the decision leaves their limits out.
//
// The bound of a second costs one command a second for each key that is denied
// and still asked for, in each process: 1,000 such keys cost a Redis 1,000 of
// the 50,000 commands that it can run. A longer Config.Longest costs less, and a
// Reset elsewhere is then noticed later.
package denycache
