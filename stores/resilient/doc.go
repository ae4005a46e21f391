// Package resilient keeps an application answering while its shared store does
// not: it puts a deadline and a circuit breaker around a store, and decides
// meanwhile as the application's owner has chosen.
//
//	store, err := resilient.New(redisstore.New(client), resilient.Config{Instances: 4})
//
// While the store works, every decision is the store's. Where it fails or does
// not answer in time, that request is decided meanwhile, in one of three ways:
//
//   - InProcess (the default) counts in this process. Each instance counts for
//     itself, so that Config.Instances of them together admit what the limits
//     say; of a quota that cannot be divided, each gets a part rounded up.
//   - Open lets everything through, uncounted.
//   - Closed refuses: the limiter answers 503.
//
// After some failures in a row the store is not asked any more but for one
// request at a time, now and then, which finds out whether it is back. The
// change is logged once, and reported to Config.OnChange.
//
// # What carries over
//
// With InProcess, every decision is made in the process too, before the store
// is asked: its counters know of all that the process has let through, so that
// a store that goes away, or does not answer a burst in time, gives nobody
// another quota in this process. Hits that were counted in the process alone are
// not added to the shared counters when the store is back: a client may then use
// what these have left. What was charged is given back where it was, in the
// store only while that answers. A Reset forgets in both, and returns an error
// where the store could not be told.
package resilient
