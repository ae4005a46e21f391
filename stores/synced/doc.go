// Package synced is a store that counts in the process and exchanges counts
// with the other processes through Redis or PostgreSQL, at an interval.
//
// Use it if a decision must not wait for a server, and if a limit may be
// exceeded a little. Do not use it for a limit that must hold exactly, such as
// that of a login form: use stores/redis for that. Package login returns an
// error for a store that is not exact.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: 100 * time.Millisecond})
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer store.Close(context.Background())
//	limiter, err := core.New(core.Config{
//		Name:  "api",
//		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{{Quota: 600, Window: time.Minute, Aligned: true}}}},
//		Store: store,
//	})
//
// # How it counts
//
// A process decides by the total that the backend last reported and by the hits
// that it has counted itself since then. Every Config.Interval it pushes what it
// has added to each counter, never totals, and receives the new totals with the
// answer. If an answer is lost, the process pushes the same batch again under the
// same number, and the backend applies it once.
//
// While the backend does not answer, each process decides by its own counts, and
// its decisions are Degraded. It keeps what it could not push until the window no
// longer counts.
//
// Windows begin at multiples of their length since the Unix epoch, in every
// process. So limits must be fixed_window or sliding_window limits with Aligned
// set; Open returns an error for others.
//
// Quotas of a request and charges (core.Item.Quotas, core.OpCharge) are counted
// like other hits: the quotas decide in this process, and other processes learn of the
// hits with the next exchange.
//
// A process cannot grant hits (core.Limiter.Grant), block a key or forget all keys:
// the backend adds up what the processes have counted, and two that give back the same hits
// would give back too many. The error wraps core.ErrUnsupported.
//
// # What a process knows
//
// When a limiter is opened, the store fetches the counters of the namespace, so
// that the first decision on a key knows what other processes have counted. Open
// waits for this at most Config.Timeout; a fetch that takes longer goes on, and
// one that fails is tried again. At most Config.MaxKeys fetched counters are kept
// for keys that have not been used yet.
//
// A key takes part in the exchanges when it is used: taken, peeked at, or read
// with Rate. Three exchanges after its last use it drops out. Its counter stays
// in the table for two windows. [Store.Sync] exchanges and fetches at once.
//
// # How far a limit can be exceeded
//
// One process never admits more than the limit by its own count. In a window, n
// processes together admit at most
//
//	quota + (n − 1) × what one process admits in an Interval and an exchange
//
// and so never more than n × quota. They reach n × quota if all start at once and
// use the quota up before the first exchange. TestOvershoot measures four
// processes that each try 1,000 times a second at 1,000 in 10 s (aligned,
// sliding). They admit, in the first window and in the later ones on average:
//
//	Interval     first window    later windows
//	10 ms        1,030           1,000
//	100 ms       1,300           1,019
//	1 s          3,065           1,197
//	0            1,000           1,000
//
// Config.Near forces an exchange when a key comes near its limit, which lessens
// the overshoot of slow traffic. With Interval 0 every decision asks the backend
// and the limit is exact. With a negative Interval nothing is exchanged.
//
// # When hits are lost
//
// A process that is killed loses the hits that it has not pushed: those of one
// Interval. Close pushes them.
//
// A backend can lose hits: a replica takes over that had not received them all,
// or somebody deletes a counter. The total that a process knows never falls in
// a window. A process that misses hits pushes its own part of them again. Hits
// counted by processes that have ended are pushed by a process that still
// misses them. If no exchange fails in that time, n processes together push at
// most n − 1 hits too many. If one fails, its process can add its part a second
// time. Two processes can also push the hits of an ended process at the same
// moment. So a window never gets more than n times the hits that were lost.
// Hits that are counted between the loss and the repair can be missing in the
// end.
//
// Refunds and resets are not losses: they are pushed to counters of their own.
// To forget a key, use the limiter's Reset. Deleting its counter in the backend
// has no effect while a process knows it.
package synced
