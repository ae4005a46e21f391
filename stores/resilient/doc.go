// Package resilient decides on requests while a shared store does not answer: it counts in this
// process, allows or denies.
//
//	store, err := resilient.New(redisstore.New(client), resilient.Config{Instances: 4})
//
// Do not put it around counters in the process, or around stores/synced: these always answer.
//
// While the store answers, it makes every decision. If it does not answer a request,
// Config.OnFailure decides: Local (the default) counts in this process, FailOpen allows the
// request, FailClosed returns an error. Decisions of Local and FailOpen without the
// store are Degraded.
//
// # Local
//
// The process counts every hit that it allows, including those that the store has allowed. Without
// the store, a key gets the rest of this instance's share: the quota divided by
// Config.Instances, rounded down, at least 1. So an outage gives no fresh quota in this process,
// however often it happens. An instance that has allowed more than its share denies the key until
// enough of these hits have left the window. It knows no hits, blocks and resets of other processes.
//
// When the store answers again, it decides alone, without the hits that were allowed meanwhile. So
// in one window a key gets at most its quota from the store and once more from all instances
// together: 200 of a quota of 100, with Instances 4 and 4 instances. If 8 instances run, it is 300.
// The windows of the store and of the instances may differ: [core.Limit.WorstCase] bounds each. A
// process that was restarted, or has evicted the key, has counted nothing.
//
// Without the store, Block, Grant, Reset and ResetAll act on this process only: their error wraps
// [core.ErrDegraded]. A refund goes to the counters that were charged. If the store does not answer
// the refund of a hit that it has allowed, the hit stays charged.
//
// # Circuits
//
// After Config.Failures failures in a row, only one request at a time waits for the
// store, about every Config.Retry, until it answers. Failures of requests that wait at
// the same time count as one. If the store reports which server has a key ([Locator]),
// each server has its own circuit: the keys on other servers are decided there.
// memcachedstore reports it, redisstore does not: a Redis Cluster has one circuit. While one of its
// primaries hangs, each request for its keys waits for the store's Timeout before it is decided
// here. Some requests for other keys are decided here, too.
package resilient
