// Package synced counts in the process and, every now and then, exchanges
// differences with a shared store: a decision costs no round trip, and the
// counts of several processes converge.
//
//	store, err := synced.New(redisbackend.New(client), synced.Config{Interval: 100 * time.Millisecond})
//	limiter, err := core.New(core.Config{
//		Name:  "api",
//		Rules: []core.Rule{{Name: "ip", Key: keyfuncs.ClientIP(), Limits: []core.Limit{{Quota: 600, Window: time.Minute, Aligned: true}}}},
//		Store: store,
//	})
//
// # How it counts
//
// A process decides by the total that it last heard of, what it has counted
// since, and what is on its way. Every Interval it pushes the differences of all
// keys that have changed, never totals, and hears the new totals in the same
// exchange. A batch whose answer was lost is pushed again under the same number,
// and applied once. While the backend does not answer, differences are kept, in
// the windows that they belong to, until these mean nothing any more; the
// process goes on counting for itself. Windows begin at multiples of their
// length since the Unix epoch in every process: only aligned fixed_window and
// sliding_window limits can be served.
//
// # What it promises
//
// A process never admits more than the limit by its own count. Of n processes
// together, a window can get at most
//
//	quota + (n − 1) × what one process admits in an Interval and an exchange
//
// and so no more than n × quota, which is what it comes to where all begin at
// once and the quota is used up before the first exchange. Measured, with four
// processes that each try 1,000 times a second at 1,000 in 10 s (aligned,
// sliding; TestOvershoot), admitted in each of the first windows:
//
//	Interval     first window    later ones, on average
//	10 ms        1,030           1,000
//	100 ms       1,300           1,019
//	1 s          3,065           1,197
//	0            1,000           1,000
//
// A limit that must hold exactly, and above all one that protects a login form,
// is for redisstore: package login refuses a Store that is eventually
// consistent. Config.Near forces an exchange when a key comes near its limit,
// which lessens the overshoot of slow traffic. With Interval 0 every decision
// asks the backend, and no more are admitted than the quota; with a negative one
// nothing is exchanged.
//
// A process that is killed loses what it has not yet pushed: the hits of one
// Interval. Close pushes them.
package synced
