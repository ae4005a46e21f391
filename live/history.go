package live

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/floodgate-go/floodgate/internal/stripes"
)

const seconds = 120 // of history

// counts are some numbers that only grow, and how much each grew in each of the last seconds.
type counts struct {
	stripes.Numbers
	past [4]history
}

// pass notes what was counted in the second that has passed.
func (c *counts) pass(second int64) {
	for i := range c.past {
		c.past[i].pass(second, c.Sum(i))
	}
}

type history struct {
	then uint64 // the count when the last second had passed
	past [seconds]uint32
}

// pass notes the count n at the end of a second.
func (h *history) pass(second int64, n uint64) {
	h.past[second%seconds] = uint32(min(n-h.then, 1<<32-1)) //nolint:gosec // it fits
	h.then = n
}

// all returns what was counted in each of the seconds up to the one given, the oldest first.
func (h *history) all(second int64) []uint32 {
	oldest := (second + 1) % seconds
	return append(append(make([]uint32, 0, seconds), h.past[oldest:]...), h.past[:oldest]...)
}

// times counts durations. Bucket 4n+i, i from 4 to 7, has those of i<<n microseconds to less than
// (i+1)<<n. The first four have 0 to 3 microseconds.
type times [124]atomic.Uint32

func (t *times) add(d time.Duration) {
	us := uint64(min(max(d.Microseconds(), 0), 1<<32-1)) //nolint:gosec // not below 0
	n := max(bits.Len64(us)-3, 0)
	t[4*n+int(us>>n)].Add(1) //nolint:gosec // 0 to 7
}

// p99 returns the end of the bucket of the 99th percentile, 0 if nothing was counted. It forgets
// what was counted.
func (t *times) p99() (end time.Duration) {
	counted, sum, passed := [len(t)]uint32{}, uint32(0), uint32(0)
	for i := range t {
		counted[i] = t[i].Swap(0)
		sum += counted[i]
	}
	for i := 0; passed < sum-sum/100; i++ {
		passed += counted[i]
		n := max(i/4-1, 0)
		end = time.Duration(i-4*n+1) << n * time.Microsecond
	}
	return end
}
