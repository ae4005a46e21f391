// Package redisstore counts in Redis: all instances of an application share one
// limit, exactly, at the cost of one round trip for each decision.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", DialerRetries: 1, ContextTimeoutEnabled: true})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: redisstore.New(client)})
//
// The server is Redis 7 or later, or one that runs its scripts, such as Valkey; it may be
// a cluster. Redis 5 and 6 work too, but errors of commands in the script have Unknown set there. The
// user needs EVALSHA, EVAL, TIME, GETRANGE, SET, DEL and PTTL on keys fg1:*, and should have SETRANGE,
// which is faster. [Store.Scan] and a ResetAll need SCAN, a client of a cluster CLUSTER SLOTS. The time
// is the server's (see [Clock]). A decision on a calendar limit fails if the process's clock differs
// from it by more than a window.
//
// # Retries
//
// A take or a charge is made at most once, whatever the client's MaxRetries is. The store
// sends a command again only if the reply proves that it did not run (NOSCRIPT, MOVED, ASK,
// TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN). If a reply is lost, the [Error] has
// Unknown set: the charge may have been made. If nothing was charged, the error wraps
// [core.ErrNotCharged].
//
// # Deadlines
//
// An operation ends within its [Timeout], whatever the client's timeouts and pool do. If a client
// hangs up, the charge of its request stays. With a *[redis.Client] that has ContextTimeoutEnabled,
// a decision that shares its command with no other waits for the reply on its caller's goroutine.
// This is faster, but a hook of the client that blocks delays it. Such a decision, and one with keys
// of several slots, do not end earlier if their context is canceled. If nothing listens at the
// address, go-redis dials five times by default. That takes longer than the Timeout: set
// DialerRetries to 1, as [NewClient] does.
//
// # Batches
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
// or fails. Until then other requests may be denied wrongly; none is allowed wrongly. With a
// [redis.Ring], or with [ShardedByKey] for a proxy that chooses a server by the first key, each key
// is taken by itself. If a node fails, hits that it had not replicated are lost.
//
// # What is stored
//
// All limits of one key of one rule are one string. It expires by itself when it no longer
// counts. Its name ([core.StoreRule.StoredKey]) shows nothing that a client sent. Programs with
// other limits, or another version of this package, may count under the same names: each allows its
// own quotas. A value that cannot be read counts as absent, or denies its key for the shortest
// window (see [core.Config]). A server that evicts keys (allkeys-*) forgets counters; a full server
// with noeviction makes no charge.
package redisstore
