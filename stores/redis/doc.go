// Package redisstore counts in Redis: all instances of an application share one
// limit, exactly, at the cost of one round trip for each decision.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", DialerRetries: 1, ContextTimeoutEnabled: true})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: redisstore.New(client)})
//
// The server is Redis 7 or later, or one that runs its scripts, such as Valkey; it may be
// a cluster. Redis 5 and 6 work too, but errors of commands in the script have Unknown set there. The
// user needs EVALSHA, EVAL, TIME, GETRANGE, SET, DEL and PTTL on keys fg1:*, and should have SETRANGE,
// which is faster; in a cluster also CLUSTER SLOTS; for [Store.Scan] and a reset of all also SCAN. The
// time is the server's (see [Clock]). A decision on a calendar limit fails if the process's clock
// differs from it by more than a window.
//
// # Once
//
// A take or a charge is made at most once, whatever the client's MaxRetries is. The store
// sends a command again only if the reply proves that it did not run (NOSCRIPT, MOVED, ASK,
// TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN). If a reply is lost, the [Error] has
// Unknown set: the charge may have been made. If nothing was charged, the error wraps
// [core.ErrNotCharged].
//
// # In time
//
// An operation ends within its [Timeout], whatever the client's timeouts and pool do. If a context
// is canceled because a browser hangs up, the operation returns, and its charge stays. Two kinds of
// decisions do not return then: those with keys of several slots, and lone ones of a *[redis.Client]
// with ContextTimeoutEnabled. The latter run on their caller's goroutine, which is faster, but a hook
// that blocks holds them up. If nothing listens at the address, go-redis dials five times by default,
// which takes longer than the Timeout: set DialerRetries to 1, as [NewClient] does.
//
// # Together
//
// Decisions that a process makes at the same time share commands, at most 64 in one. Each has its
// own deadline, result and error, and none is charged because of another. If a reply is lost, all
// decisions of its command fail. A decision is sent at once if fewer than two commands are under way
// (up to twelve, if the server is far away). Otherwise it waits for the next reply, at most 10 ms.
// Hooks of the client see each command once, with the values of one request's context. They must not
// keep it.
//
// # Several servers
//
// In a cluster, the keys of a decision that are in one hash slot are decided in one step. Keys of
// different slots are taken in order, with one command each, and refunded if a later one denies
// or fails. Until then other requests may be denied wrongly; none is allowed wrongly. A
// [redis.Ring] takes every key by itself; so does a proxy that chooses a server by the first key,
// with [ShardedByKey]. Hits that a failed node had not replicated are forgotten.
//
// # What is stored
//
// All limits of one key of one rule are one string, which expires by itself when it no longer
// counts; its name ([core.StoreRule.StoredKey]) shows nothing that a client sent. Programs with
// other limits, or another version of this package, may count under the same names: each allows its
// own quotas. A value that cannot be read counts as absent, or denies its key for the shortest
// window (see [core.Config]). A server that evicts keys (allkeys-*) forgets counters; a full server
// with noeviction makes no charge.
package redisstore
