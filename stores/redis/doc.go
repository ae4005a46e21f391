// Package redisstore counts in Redis: all instances of an application share one
// limit, exactly, at the cost of one round trip for each decision.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", DialerRetries: 1})
//	limiter, err := core.New(core.Config{
//		Name:  "api",
//		Rules: rules,
//		Store: redisstore.New(client),
//	})
//
// # What is stored
//
// All limits of one key of one rule are one string, whose name
// [core.StoreRule.StoredKey] returns; the name shows nothing that a client
// sent. One script reads, decides and writes, for all keys of a decision
// together. It has the algorithms that the rules of its decisions use, and no others. The
// time is that of the Redis server (see [Clock]). A state expires by itself soon after it no
// longer counts. If another program has removed its
// expiry, the next request sets it again.
//
// A value is a version byte, 2, and a record for each limit: its length, its
// expiry, the limit's algorithm and window, and its state. It also has records
// of limits that another program, or another version of this one, has under the
// same limiter and rule. A write keeps those records until they expire, so that
// each program admits exactly its own quotas. It keeps at most 32 of them and
// 256 KiB. If there are more, those that expire first are dropped.
//
// A value that cannot be read, or that is of another type, counts as none and
// is replaced by the next charge, or it denies its key for the shortest window
// of its rule: see [core.Config]. A value longer than 1 MiB and 80 KiB for
// each limit of the rule cannot be read, and the rest of it is never fetched. A
// value with a later version byte is never replaced: it denies its key until it
// expires.
//
// # Once, and in time
//
// A take is charged at most once, whatever the client's MaxRetries and
// MaxRedirects are: go-redis is told not to repeat it, and the store repeats it
// only after a reply which proves that nothing ran (NOSCRIPT, MOVED, ASK,
// TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN). If a reply is lost,
// the operation returns an [Error] whose Unknown is true: the charge may have
// been made. So does an error reply that Redis itself does not give, because it
// may be that of a proxy. With automatic pipelining, or a client of the application's own
// type, Unknown is also true if the command was not sent.
//
// An operation ends within its [Timeout], whatever the client's timeouts and
// pool are. The client may keep the connection until its own ReadTimeout,
// unless its ContextTimeoutEnabled is set. If a client hangs up, the charge of
// its request stays. If nothing listens at the address, go-redis by default
// dials five times, which takes longer than the Timeout: the error is then a
// timeout and does not tell why. Set DialerRetries to 1, as [NewClient] does.
//
// If a [redis.Client] has ContextTimeoutEnabled set, as that of [NewClient] has, and no
// other decision is under way, a decision waits for the client on the caller's goroutine,
// which is faster. If the caller's context is canceled meanwhile, the decision still waits
// for the reply, until the Timeout at the latest. If the context has a deadline before
// that, the decision ends at that deadline. A hook of such a client must keep to the
// deadline of its context.
//
// # Charges and quotas of a request
//
// A charge ([core.OpCharge]) is made at most once, as a take is, and shares
// commands with takes. If its keys are in several hash slots, the slots are charged
// in order, with one command each. If the first of them fails and nothing was charged,
// the charge ends, and its error wraps [core.ErrNotCharged]. If one fails otherwise,
// the others are charged all the same, because the caller must not repeat the charge. A
// charge that would replace the value of a later version charges nothing.
//
// A take with quotas of its own ([core.Item].Quotas) sends some 20 bytes more for each
// limit. Decisions with the same quotas share these bytes in a command. A take without
// them costs what it did.
//
// # Together
//
// Decisions that a process makes at the same time share commands. Two commands may
// be under way at a time, and more if the server is far away: one for each 100 µs of
// a round trip, up to twelve. A decision that comes when fewer are under way is sent
// at once. One that comes later waits for the next reply, and is sent with all
// others that wait: at most 64 in a command, and fewer if the script needs long for them.
// So a busy process costs the server less than one command a decision, and nobody
// waits for company.
//
// Each decision keeps its own deadline, result and error. The script makes the
// decisions of a command one after the other, and a failed one neither fails nor
// charges another. If the reply of a command is lost, the error of each of its
// decisions has Unknown set. A decision whose deadline passes before its command is
// sent is not charged. If replies are overdue, later decisions wait 10 ms at most,
// or an eighth of the Timeout if that is less, and are then sent all the same.
//
// Hooks of the client, for tracing for example, see each command once. Its context
// has the values of one of its requests. A hook must not keep a command after it has
// returned. If a hook panics, each decision of the command returns an error, and the
// panic is logged: see [Log].
//
// # Clusters
//
// With a [redis.ClusterClient], the keys of a decision that are in one hash
// slot are decided in one step; so is every decision on a single key. Only
// decisions on keys of one hash slot share a command. Keys in
// different slots are taken in order, with one command each, and refunded if a
// later one is denied or fails. Until the refund, other requests may be denied
// that should have passed; none is admitted that should have been denied. A
// charge whose refund fails counts until its window ends. With a [redis.Ring]
// every key is taken by itself, in the same way, and commands are not shared. A
// proxy that chooses a server by the first key of a command needs [ShardedByKey].
// If a node fails over, hits
// that the new primary had not received yet are forgotten.
//
// # Pipelining
//
// go-redis 9.23 and later can pipeline automatically. The results of
// client.AutoPipeline() and client.AsyncAutoPipeline() can be given to New. Prefer the
// client itself: concurrent decisions share commands without them, too. If a reply is
// lost, a pipeliner holds up the decisions behind it until the client's ReadTimeout,
// which is 3 s by default. Each of them then returns an [Error] with Unknown set at its
// Timeout.
//
// # Servers
//
// The store needs Redis 5 or later, or a server that runs its scripts with the
// struct library, such as Valkey. The user needs EVALSHA, EVAL, TIME, GETRANGE,
// SET, DEL, PTTL and PEXPIRE on keys fg1:*, and should have SETRANGE, which is faster. A client
// of a cluster needs CLUSTER SLOTS, and [Store.Scan] SCAN. A server with maxmemory-policy allkeys-* may evict
// counters, which then start again at 0. A full server with noeviction makes no
// charge and returns an error, which is an [Error] of class [ClassFull].
package redisstore
