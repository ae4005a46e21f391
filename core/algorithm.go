package core

import "time"

// The algorithms' names, as in limits text and in String.
var algorithmNames = [...]string{
	SlidingWindow:  "sliding_window",
	FixedWindow:    "fixed_window",
	BucketedWindow: "bucketed_window",
	SlidingLog:     "sliding_log",
	TokenBucket:    "token_bucket",
}

// String returns the algorithm's name as it is written in limits text:
// sliding_window, fixed_window, bucketed_window, sliding_log or token_bucket.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return "unknown_algorithm"
}

// Guarantees is what an algorithm promises, for one limit of quota L (and
// burst B) in windows of length W.
type Guarantees struct {
	// Exact says that no window of length W, wherever it begins, ever holds
	// more than L hits. This and WorstCase are for one clock: if the clocks of
	// processes that share a store differ by d, less than W, they are for
	// windows of length W − d.
	Exact bool
	// WorstCase is the most hits that some window of length W can hold:
	// L, 2 × L, or B + L for a token bucket; with a Lockout, L for each time
	// that the shortest waits let the quota be used up, and once more.
	WorstCase int64
	// Lifetime is the longest time after a hit in which it can still mean
	// anything: a shared store keeps a state for so long.
	Lifetime time.Duration
	// StateWords is the number of 64-bit words that one key takes at most.
	StateWords int
}

// Guarantees returns what the limit promises. The limit must be valid.
func (l Limit) Guarantees() Guarantees {
	m := newMeter(l)
	g := Guarantees{WorstCase: l.Quota, StateWords: m.fixedWords()}
	switch m.algorithm {
	case lockoutWindow:
		g.WorstCase = l.Quota * (m.lockoutsWithin() + 1)
	case SlidingWindow, FixedWindow:
		g.WorstCase = 2 * l.Quota
	case TokenBucket:
		g.WorstCase = l.capacity() + l.Quota
	case BucketedWindow:
		g.Exact, g.StateWords = true, m.bucketsWords()
	case SlidingLog:
		g.Exact, g.StateWords = true, logHeader+int(l.Quota)
	}
	g.Lifetime = micros(m.lifetime())
	return g
}
