package observe

import (
	"slices"
	"sync/atomic"
	"time"
)

// Durations is a histogram of durations.
type Durations struct {
	// Took is the sum of all durations.
	Took time.Duration
	// Buckets has one count for each bound: that of the durations up to the bound and above the
	// bound before. One more counts the durations above all bounds. The bounds are [Bounds] for
	// operations of a store, and [RequestBounds] for requests that wait.
	Buckets []uint64
}

// Bounds returns the bounds of the Buckets of [StoreCounts], in ascending order.
func Bounds() []time.Duration { return slices.Clone(bounds) }

var bounds = []time.Duration{
	250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond,
	25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, time.Second,
}

// RequestBounds returns the bounds of the Buckets of [WaitCounts], in ascending order. They are
// OpenTelemetry's for ASP.NET Core, and 30 s and 1 min.
func RequestBounds() []time.Duration { return slices.Clone(requestBounds) }

var requestBounds = []time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	7500 * time.Millisecond, 10 * time.Second, 30 * time.Second, time.Minute,
}

// durations adds up how long something took.
type durations struct {
	bounds  []time.Duration
	took    atomic.Int64 // nanoseconds, in all
	buckets []atomic.Uint64
}

func newDurations(bounds []time.Duration) durations {
	return durations{bounds: bounds, buckets: make([]atomic.Uint64, len(bounds)+1)}
}

func (d *durations) add(took time.Duration) {
	d.took.Add(int64(took))
	i, _ := slices.BinarySearch(d.bounds, took)
	d.buckets[i].Add(1)
}

func (d *durations) read() Durations {
	n := Durations{Took: time.Duration(d.took.Load())}
	for i := range d.buckets {
		n.Buckets = append(n.Buckets, d.buckets[i].Load())
	}
	return n
}
