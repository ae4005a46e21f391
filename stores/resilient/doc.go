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
// When the store answers again, this process charges to it the hits that it
// admitted meanwhile. It does so once for each key, with the first request for
// the key, before the store decides on that request. From then on the store
// decides alone, so that a Reset by any process counts for all. A store that was
// down at the start, or comes back empty, gives a key no fresh quota. If the hits
// do not fit, because other instances have charged theirs, the key's quota is used
// up. While one request charges the hits, others for the key must be admitted by
// the counters of this process too; a denial for that reason is Degraded. A
// failure leaves the hits to the next request.
//
// What holds exactly: hits are charged to a limit as far as they still count in
// it, and count from the moment of the charge, up to one lifetime longer than
// they would have. A hit whose answer was lost may have been charged: it is
// charged again only if the store's count is below that of this process. A Reset
// that comes before an instance has seen a key again does not end the hits of
// that instance: reset once more. Limits of one rule are charged one by one if the
// store can do that ([Divisible]); otherwise by the same number of hits, which may
// be too few for a long limit beside a short one.
//
// What was charged is given back where it was charged, in the store only while
// that answers. A Reset forgets in both, and returns an error if the store could
// not be told.
package resilient
