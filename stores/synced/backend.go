package synced

import (
	"context"
	"iter"
	"time"
)

// Backend is the shared store of a [Store]: counters by namespace, key, window
// length and window start. Packages redisbackend and pgbackend have one each.
// Its methods may be called concurrently; a Backend's values can be compared.
type Backend interface {
	// PushDiffs adds every difference of the batch to its counter, all of them
	// or none, and returns the totals after that, in order. A difference of 0
	// adds nothing and makes no counter: it only asks for the total.
	//
	// A batch whose Sequence is not above that of the last one applied for its
	// namespace and Node adds nothing: it is one that was applied before, and
	// whose answer was lost. Sequence 0 is always applied. A counter lives
	// until two lengths of its window have passed since the window's end.
	PushDiffs(ctx context.Context, b Batch) (totals []int64, err error)
	// Counters yields the counters of a namespace in windows of these lengths
	// that are current at a time, or were the ones before. After an error it
	// yields nothing more.
	Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[Counter, error]
	// Window returns one counter's total, 0 where there is none.
	Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error)
}

// Batch is differences that are pushed together.
type Batch struct {
	Namespace string
	// Node names the process that pushes, the same in all its batches.
	Node string
	// Sequence counts the batches of a node, from 1; the same batch, pushed
	// again, has the same. 0: the batch is pushed once only.
	Sequence uint64
	// At is the time by the node's clock.
	At    time.Time
	Diffs []Diff
}

// Diff is a difference of one counter. No two of a batch are of the same.
type Diff struct {
	Key    string // of the characters A-Z a-z 0-9 _ : . -, at most 200
	Window time.Duration
	Start  time.Time // of the window
	Diff   int64
}

// Counter is a counter as a Backend has it.
type Counter struct {
	Key    string
	Window time.Duration
	Start  time.Time
	Count  int64
}
