// Package denycache remembers denials in the process: a key that a shared store
// has denied is denied again without asking the store, for a second at most. A
// flood from a client over its limit then costs the store about one command a
// second, however many requests the flood has.
//
// redisstore and memcachedstore contain it, switched on. For another store:
//
//	store, err := denycache.New(shared, denycache.Config{})
//
// Do not use it for counters in the process: they are faster than the cache.
//
// # What stays exact
//
// While a key is denied nothing is charged to it, so RetryAfter and ResetAfter
// only grow shorter. A request is passed to the store as soon as its wait is
// over. A request with another cost, or with other quotas of its own
// (core.Item.Quotas), has another wait: the store is asked about it, and its
// denial is remembered beside the first. If that request is admitted, or hits are
// charged (core.Bound.Charge), the key's other denials are forgotten, because
// their waits have changed.
//
// A denial is remembered only if it lasts. A store that takes several items one
// by one (core.Traits.OneStep is false) may deny because of hits that are
// refunded a moment later. Its denial is remembered only if the batch has a
// single item. A denial by a fallback (core.Batch.Degraded) is not remembered.
//
// # What is late
//
//   - A Reset or Refund by another process takes effect in this process after a
//     second at most (Config.Longest). No message has to arrive for that,
//     because the store is asked again: one caller asks when nine tenths of the
//     time are over, and the others are denied until it has its answer or the
//     time is over. A Reset or Refund through this Store takes effect at once.
//   - Remaining is that of the remembered denial: it may have grown since.
//
// If one of several keys is known to be denied, the others are not looked up:
// core.Item.Unknown is set for them, and the decision leaves out their limits.
//
// The bound of a second costs one command a second for each denied key that is
// still asked for, in each process: for 1,000 such keys, 1,000 of the 50,000
// commands a second that a Redis can run. A longer Config.Longest costs less,
// and delays the effect of a Reset by another process.
package denycache
