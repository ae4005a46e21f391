package synced

import (
	"context"
	"iter"
	"math"
	"time"
)

// Backend holds the counters that processes share: one for each namespace, key, window length
// and window start. Packages redisbackend and pgbackend implement it, and package backendtest
// tests it. Its methods may be called concurrently, and its values must be comparable.
type Backend interface {
	// PushDiffs adds every difference of the batch to its counter, all of them or none, and
	// returns the counters' totals after that, in order. A difference of 0 adds nothing and
	// creates no counter: it asks for the total. The total of a counter that does not exist is
	// 0. A counter that would fall below 0 is 0, and one that would pass 2^53 − 1 may stop there.
	//
	// A batch whose Sequence is not above that of the last batch applied for its Namespace and Node
	// adds nothing: it was applied before, and its answer was lost. Sequence 0 is always applied,
	// so the backend must not repeat such a batch by itself. A counter lives for at least two window lengths
	// after its window's end.
	PushDiffs(ctx context.Context, b Batch) (totals []int64, err error)
	// Counters yields a namespace's counters of these window lengths: those of the windows that
	// contain the time at, and of the windows before them. After an error it yields nothing more.
	Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[Counter, error]
	// Window returns one counter's total, 0 if it does not exist.
	Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error)
}

// Batch has the differences that are pushed together.
type Batch struct {
	Namespace string
	// Node identifies the store that pushes. It is the same in all its batches.
	Node string
	// Sequence numbers the batches of a node, from 1, with gaps. A batch that is
	// pushed again keeps its number. 0: the batch is pushed only once.
	Sequence uint64
	// At is the time by the node's clock.
	At    time.Time
	Diffs []Diff
}

// Forget is the Diff that makes a counter 0, whatever its total.
const Forget = math.MinInt64

// Diff is an addition to one counter. A batch has at most one for a counter.
type Diff struct {
	// Key has the characters A-Z a-z 0-9 _ : . - and at most 200 of them.
	Key    string
	Window time.Duration
	Start  time.Time // of the window
	Diff   int64     // negative: hits are given back
}

// Counter is a counter of a Backend.
type Counter struct {
	Key    string
	Window time.Duration
	Start  time.Time
	Count  int64
}
