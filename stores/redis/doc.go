// Package redisstore counts in Redis: all instances of an application share one
// limit, exactly, for one round trip a decision.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	limiter, err := core.New(core.Config{
//		Name:  "api",
//		Rules: rules,
//		Store: redisstore.New(client),
//	})
//
// # What is stored
//
// All limits of one key of one rule are one string, whose name [core.StoredKey]
// makes; nothing of what a client sends is legible in it. One script reads,
// decides and writes, for all keys of a decision together. The time is that of
// the Redis server (see [Clock]). A state expires by itself soon after it has
// lost its meaning; a lifetime that has been taken away is given back by the next
// request.
//
// A value is a version byte, 2, and a record for each limit: its length, its
// expiry, the limit's algorithm and window, and its state. Limits that another
// program, or another version of this one, has under the same limiter and rule
// have records there too. A write keeps those until they expire, so that each
// program admits exactly its own quotas. It keeps 32 records of others and
// 256 KiB at most, and drops those first that expire first.
//
// A value of another type, or that cannot be read, counts as none and is replaced
// by the next charge, or denies its key for the shortest window of its rule: see
// [Unreadable]. A value longer than 1 MiB, and 80 KiB for each limit of the rule,
// cannot be read, and the rest of it is never looked at. A value with a later version byte is never replaced: it denies
// its key until it expires.
//
// # Once, and in time
//
// A take is charged at most once, whatever the client's MaxRetries and
// MaxRedirects are: it is repeated only after a reply which proves that nothing
// ran (NOSCRIPT, MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY,
// MASTERDOWN). Where a reply is lost, the answer is an [Error] whose Unknown
// says that the charge may have been made. An operation ends within its
// [Timeout], whatever the client's timeouts and pool are. The charge of a
// request whose client has hung up stands.
//
// # Clusters
//
// With a [redis.ClusterClient], the keys of a decision that are in one hash
// slot are decided on in one step; so is every decision on a single key. Keys
// in different slots are taken in order, one command each, and given back when
// a later one refuses or fails: meanwhile others may be refused that would have
// passed, and never the other way round. What fails to be given back stays
// charged until its window ends. With a [redis.Ring] every key is taken by
// itself, in the same way. When nodes fail over, hits that the new primary had
// not yet got are forgotten.
//
// # Pipelining
//
// The automatic pipelining of go-redis 9.23 and later, which writes the
// commands of concurrent callers together, is used by giving New what
// client.AutoPipeline() or client.AsyncAutoPipeline() returns. With hundreds of
// concurrent decisions it decides a fifth to two fifths more a second; with few,
// or with many limits in each, it is no faster or slower: it is for servers that
// are known to be busy.
//
// # Servers
//
// Redis 5 or later, or a server that runs its scripts with the struct library,
// such as Valkey. The user needs EVALSHA, EVAL, TIME, GETRANGE, SET, DEL,
// PTTL and PEXPIRE on keys fg1:*. A server that evicts (maxmemory-policy allkeys-*) may
// evict counters, which then begin anew; with noeviction a full server refuses
// to charge, which is an [Error] of class [Full].
package redisstore
