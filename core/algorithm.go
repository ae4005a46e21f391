package core

import (
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// String returns the algorithm's name as it is written in limits text:
// sliding_window, fixed_window, bucketed_window, sliding_log, token_bucket or
// in_flight.
func (a Algorithm) String() string {
	if !a.known() {
		return "unknown_algorithm"
	}
	return meterAlgorithms[a].String()
}

// WorstCase returns the most hits that some window of the limit's length, or
// two windows of its Zone, can hold, with quota L and burst B: L for BucketedWindow and SlidingLog, 2 × L for
// SlidingWindow and FixedWindow, B + L for TokenBucket; with a Lockout, L for
// each time that the shortest waits let the quota be used up, and once more; and
// MaxQuota for Leases, because a request that ends makes room for another one. It
// holds for one clock: if the clocks of processes that share a store differ by
// d, less than the window, it holds for windows that are d shorter. The limit
// must be valid.
func (l Limit) WorstCase() int64 {
	m := newMeter(l)
	return m.WorstCase()
}

// Lifetime returns the longest time after a hit in which the hit can still mean
// anything. A shared store keeps a counter for so long. The limit must be valid.
func (l Limit) Lifetime() time.Duration {
	m := newMeter(l)
	return meter.Duration(m.Lifetime())
}
