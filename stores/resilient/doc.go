// Package resilient keeps an application deciding while its shared store does
// not answer. It puts a circuit breaker around a store, a deadline around one that
// keeps none by itself (core.Traits.KeepsDeadline), and decides meanwhile as the
// application's owner has chosen.
//
//	store, err := resilient.New(redisstore.New(client), resilient.Config{Instances: 4})
//
// Do not use it around counters in the process: they are always there.
//
// While the store works, every decision is the store's. If it fails or does not
// answer in time, that request is decided meanwhile, in one of three ways:
//
//   - InProcess (the default) counts in this process. Each instance counts for
//     itself, so that Config.Instances of them together admit what the limits
//     say; of a quota that cannot be divided, each gets a part rounded up.
//   - Open lets everything through, uncounted.
//   - Closed refuses: the limiter answers 503.
//
// The first failure is logged at once, with its cause. After some failures in a
// row the store is not asked any more but for one request at a time, now and then,
// which finds out whether it is back. The change is logged and reported to
// Config.OnChange.
//
// # Several servers
//
// If the store tells which server has a key ([Locator]), each server has a circuit
// breaker: with memcachedstore, the keys of the other servers are still decided by
// them while one is down. A decision on several keys, of which one is on a server
// that is down, is made in the process as a whole. redisstore does not tell: with
// one dead node of a cluster or a Ring, a decision on its keys fails and is made
// meanwhile, after the store's deadline; and when enough of them fail in a row,
// all decisions are, until a probe finds a node that answers.
//
// # What carries over
//
// With InProcess, every decision is made in the process too, before the store
// is asked: its counters know of all that the process has let through, so that
// a store that goes away, or does not answer a burst in time, gives nobody
// another quota in this process.
//
// The store does not learn of hits that were admitted while it was gone. A key
// that has such hits must therefore be admitted by the counters of this process
// too when the store is back, until these hits are over: a store that was down at
// the start, or comes back empty, gives it no fresh quota. With several Instances
// the process counts with its share of the quota, and another instance does not
// know of the hits. A denial for that reason is Degraded. Keys without such hits
// are decided by the store alone.
//
// What was charged is given back where it was charged, in the store only while
// that answers. A Reset forgets in both, and returns an error if the store could
// not be told.
package resilient
