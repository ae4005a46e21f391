// Package redisstore counts in Redis: all instances of an application share one limit, exactly, at
// the cost of one round trip for each decision.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", DialerRetries: 1, ContextTimeoutEnabled: true})
//	limiter, err := core.New(core.Config{Name: "api", Rules: rules, Store: redisstore.New(client)})
//
// The server is Valkey, or Redis 7 or later; it may be a cluster. Redis 5 and 6 work too, but
// errors of commands in the script have [Error].Unknown set. docs/share/redis.md names the commands
// that it needs. The server's clock decides (see [Clock]). If the process's clock differs
// from it by more than a window, decisions on calendar limits fail.
//
// # Retries
//
// A take or a charge is made at most once, whatever the client's MaxRetries is. The store sends a
// command again only if the reply proves that it did not run, as MOVED and READONLY do. If a reply
// is lost, the [Error] has Unknown set: the charge may have been made. If nothing was charged, the
// error wraps [core.ErrNotCharged].
//
// # Deadlines
//
// An operation ends within its [Timeout], whatever the client's timeouts and pool do, unless a hook
// of the client blocks. If a client hangs up, the charge of its request stays.
//
// # Batches
//
// Decisions that a process makes at the same time share commands, at most 64 in one. Each has its
// own deadline, result and error. If a reply is lost, all decisions of its command fail. While two
// commands are under way, a decision waits for the next reply, at most 10 ms. Hooks of the client
// see each command once.
//
// # Several servers
//
// In a cluster, the keys of a decision in one hash slot are decided in one step. Keys of
// different slots are taken in order, with one command each, and refunded if a later one denies or
// fails. Until then other requests may be denied wrongly; none is allowed wrongly. With a
// redis.Ring, or with [ShardedByKey], each key is taken by itself. If a node fails, hits that it
// had not replicated are lost.
//
// # What is stored
//
// All limits of one key of one rule are one string, which expires by itself. Its name
// ([core.StoreRule.StoredKey]) shows nothing that a client sent. A value that cannot be read counts
// as absent, or denies its key for the shortest window (see [core.Config]). A server that evicts
// keys, or a program that changes their lifetimes, forgets counters.
package redisstore
