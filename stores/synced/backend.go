package synced

import (
	"context"
	"iter"
	"time"
)

// Backend holds the counters that processes share: one for each namespace, key,
// window length and window start. Packages redisbackend and pgbackend implement
// it. Its methods may be called concurrently, and its values must be comparable.
//
// A backend may also have a method Server() string, which names the server
// without secrets: Open then logs if two stores of a process count for limiters
// of one name there.
type Backend interface {
	// PushDiffs adds every difference of the batch to its counter, all of them
	// or none, and returns the counters' totals after that, in order. A
	// difference of 0 adds nothing and creates no counter: it asks for the total.
	// The total of a counter that does not exist is 0.
	//
	// A batch whose Sequence is not above that of the last batch applied for its
	// Namespace and Node adds nothing: it was applied before, and its answer was
	// lost. Sequence 0 is always applied. A counter lives at least until two
	// lengths of its window have passed since the window's end.
	//
	// A total that falls although only positive differences were added means to
	// the store that hits were lost: it pushes them again.
	PushDiffs(ctx context.Context, b Batch) (totals []int64, err error)
	// Counters yields the counters of a namespace in windows of these lengths
	// that are current at a time, or were the ones before. After an error it
	// yields nothing more.
	Counters(ctx context.Context, namespace string, windows []time.Duration, at time.Time) iter.Seq2[Counter, error]
	// Window returns one counter's total, 0 if it does not exist.
	Window(ctx context.Context, namespace, key string, start time.Time, window time.Duration) (int64, error)
}

// Batch is the differences that are pushed together.
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

// Diff is what is added to one counter. A batch has at most one for a counter.
type Diff struct {
	// Key has the characters A-Z a-z 0-9 _ : . - and at most 200 of them. A
	// counter of hits gets only positive differences. Refunds have a counter of
	// their own, which gets only negative ones: its key is that of the hits
	// with "-" appended.
	Key    string
	Window time.Duration
	Start  time.Time // of the window
	Diff   int64
}

// Counter is a counter of a Backend.
type Counter struct {
	Key    string
	Window time.Duration
	Start  time.Time
	Count  int64
}
