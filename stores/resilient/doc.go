// Package resilient keeps an application deciding while its shared store does
// not answer. It puts a circuit breaker around the store, and a deadline if the
// store keeps none by itself (core.Traits.KeepsDeadline). Requests that the
// store does not answer are decided by [Mode].
//
//	store, err := resilient.New(redisstore.New(client), resilient.Config{Instances: 4})
//
// Do not use it around counters in the process: they always answer.
//
// If the store works, it makes every decision. If it fails or does not answer
// in time, the request is decided without it, in one of three modes:
//
//   - ModeInProcess (the default) counts in this process. Each instance counts
//     for itself, with its part of every quota and burst: the quota divided by
//     Config.Instances, rounded up. Together the instances admit the quota, or
//     less than one hit each more if it does not divide. The quotas of a request
//     (core.Item.Quotas) are divided in the same way; core.Unlimited stays.
//   - ModeOpen allows every request and counts none.
//   - ModeClosed denies every request: the limiter answers 503.
//
// The first failure is logged at once, with its cause. After Config.Failures
// failures in a row the circuit opens: one request at a time asks the store,
// about every Config.Retry, until the store answers again. Each opening and
// closing of the circuit is logged and reported to Config.OnChange.
//
// # Several servers
//
// If the store reports which server has a key ([Locator]), each server has a
// circuit breaker of its own. With memcachedstore, for example, the keys on
// healthy servers are still decided there while another server is down. A
// decision on several keys is made without the store if one of the keys is on a
// server that is down. redisstore reports no servers. If one node of a cluster
// or a Ring is dead, a decision on its keys fails after the store's deadline
// and is then made without the store. If Config.Failures of them fail in a row,
// all decisions are made without the store until a probe finds a node that
// answers.
//
// # What carries over
//
// With ModeInProcess, the process makes every decision too, before it asks the
// store. So its counters have the hits that the process has admitted, up to its
// part of the quota: if the store goes away, or does not answer a burst in time,
// no key gets another quota in this process.
//
// When the store answers again, this process charges to it the hits that the
// process admitted during the outage. It charges each key once: with the next
// request for the key or in the background, whichever comes first. From then on
// the store decides alone, so that a Reset by any process counts for all. The hits
// of the outage are charged with core.Bound.Charge, with the quotas of the last
// request: also above the quota, if other instances have charged theirs. While the hits are being charged, the counters of
// this process must admit the requests for the key too; a denial by them is
// Degraded. If the charge fails, the hits are charged later.
//
// A key gets no fresh quota if the store was down at the start. If the store
// comes back empty, it depends on the key:
//
//   - If this process admitted or denied requests for the key during the
//     outage, it charges to the store also the hits from before the outage that
//     it still counts. An instance cannot tell its own hits from those of
//     others: it charges these hits only as far as the store counts fewer hits
//     than the instance does. So if several instances admitted hits before the
//     outage, those of one instance are restored.
//   - If nobody asked for the key during the outage, it begins anew.
//
// A denial counts for this if the circuit was open or the operation failed. If
// the store only answered too late, it has lost nothing. Nor does a denial count
// that a cache in front of the store has remembered, as that of redisstore does
// for a second: the store was not asked.
//
// One goroutine charges in the background, 32 keys at a time, with one
// operation under way. It runs while there are hits to charge, until Close. It
// asks the store at most one and a half times Config.Retry after the store
// answers again, even if there are no requests; an attempt that is still
// waiting for its deadline delays it by that deadline.
//
// Each limit is charged with the hits that this process still counts in it. The
// hits count from the moment of the charge, so a hit of an outage may count for
// up to one lifetime (core.Limit.Lifetime) longer than others do. A hit whose
// answer was lost may have been charged: it is charged again only if the store
// counts fewer hits than this process. A charge that the store has rejected is
// made later, once: its error says that nothing was charged
// (core.ErrNotCharged). The hits of keys longer than 256 bytes
// are charged with the next request for the key. If the limits of a rule owe
// different numbers of hits and the store is [Divisible], they are charged one by
// one; if the store fails between two of them, the later ones may miss theirs.
// Limits of a store that is not Divisible are all charged with the same number of
// hits, which may be too few for a long limit beside a short one.
//
// A charge (core.Bound.Charge) goes the same way as an admitted request. With
// ModeOpen and ModeClosed, a charge that does not reach the store is not made:
// ModeOpen returns no error, ModeClosed returns one. In this process a token bucket
// owes at most twice its part of the burst, and a log keeps as many hits as its part
// of the quota, so that more than that of an outage's charges is not charged to the
// store.
//
// # In flight
//
// The slots of a limit of [core.Leases] are divided like a quota. With
// ModeInProcess, the process counts the leases that it holds: those that the
// store has given too, above its part if need be. A lease that was taken in an
// outage is released in the process. A lease that the store may have is released
// in both; if the store does not answer, Release returns an error, and the limiter
// tries again.
//
// Renew renews the leases in the process, and returns an error if the store does not
// answer. When the store answers again, it is told of the leases that it may have
// lost or never had: those of a key before it decides on the key, the others
// by the next Renew. They count there, above the quota if need be. While a caller tells the store of a
// key's leases, this process must admit other requests for the key too. If an answer
// was lost and this process denied the request, the lease that the store may have given is released before the store
// decides on the key again; at the latest it ends by itself. With a [Locator], leases of one server
// are renewed while another one is down.
//
// # Resets and refunds
//
// A Reset ends only hits that have been charged. With the default Retry and
// some thousand keys for each instance, every instance that reaches the store
// has charged its hits two seconds after the store answers again. Two kinds of
// instances charge hits after a Reset: an instance that could not reach the
// store when the Reset was made, and an instance that admits or denies requests
// for the key in an outage after a Reset by another instance, because its
// counters did not see that Reset. Reset the key again then.
//
// A refund is made where the hit was charged: in the process, and in the store
// if the store answers. A hit of an outage is refunded only in the process: it is
// not owed to the store any more, but if it has been charged to the store already,
// it stays charged there. A Reset forgets the key in
// both. If the store could not be told, the error wraps core.ErrDegraded: reset the key
// again when the store answers.
//
// # Blocks
//
// With ModeInProcess, a block (core.Limiter.Block) holds in the store and in the process that has
// called it. If the store could not be told, the error wraps core.ErrDegraded: the key is
// blocked in this process only. When the store answers again, this process blocks the key
// there for the rest of the time: with the next request for the key or in the background,
// whichever comes first. That does not shorten a block that the store has. A block that is over by then is not told, and none
// is told after the process has ended. No hit is charged because of a block. With
// ModeOpen and ModeClosed, a block that does not reach the store holds nowhere.
//
// A process that has blocked a key denies it in an outage until the block's time is over, also
// if another process has ended the block.
package resilient
