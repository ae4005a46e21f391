// Package synced is a store that counts in the process and exchanges counts
// with the other processes through Redis or PostgreSQL, at an interval.
//
// Use it if a decision must not wait for a server, and if a limit may be exceeded a little. Do
// not use it for a limit that must hold exactly, such as that of a login form: use stores/redis
// for that. Package login returns an error for a store that is not exact.
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
// same number, and the backend applies it once. With Interval 0 every decision is
// an exchange, and the limit is exact. With a negative Interval nothing is exchanged.
//
// Windows begin at multiples of their length since the Unix epoch, in every
// process. So limits must be fixed_window or sliding_window limits with Aligned
// set. The clocks of all processes must agree to much less than a window.
//
// When a limiter is opened, the store fetches the counters of the namespace, so that
// the first decision on a key knows what other processes have counted. What it does not get
// within Config.Timeout, it knows after the first exchange of a key. A key takes part
// in the three exchanges after each use: a take, a peek or a call of Rate.
// A process cannot grant hits, block a key or forget all keys.
//
// # How far a limit can be exceeded
//
// One process never allows more than the limit by its own count. In a window, n
// processes together allow at most
//
//	quota + (n − 1) × what one process allows in an Interval and an exchange
//
// and so never more than n × quota. They reach n × quota if all start at once and
// use the quota up before the first exchange. TestOvershoot measures four
// processes that each try 1,000 times a second at 1,000 in 10 s (aligned,
// sliding). They allow about, in the first window and in the later ones on average:
//
//	Interval     first window    later windows
//	10 ms        1,030           1,003
//	100 ms       1,300           1,020
//	1 s          3,500           1,250
//	0            1,000           1,000
//
// # When hits are lost
//
// While the backend does not answer, each process decides by its own counts, and
// its decisions are Degraded. It keeps what it could not push until the window no
// longer counts. With Interval 0 a decision is an error instead; its hits stay
// charged if only the answer was lost.
//
// A process that is killed loses the hits that it has not pushed: those of one
// Interval. Close pushes them. A backend that loses its data loses these counts: the
// processes count on from the totals that it reports then. If two processes reset a key at
// the same moment, hits that were pushed in between can be forgotten too.
package synced
