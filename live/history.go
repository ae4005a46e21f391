package live

import (
	"sync/atomic"
	"time"
)

const seconds = 120 // of history

// history is what was counted in each of the last seconds.
type history struct {
	then uint64 // the count when the last second had passed
	past [seconds]uint32
}

// pass notes the count n at the end of a second.
func (h *history) pass(second int64, n uint64) {
	h.past[second%seconds] = uint32(min(n-h.then, 1<<32-1)) //nolint:gosec // it fits
	h.then = n
}

// last returns what was counted in each of the last n seconds, the oldest first.
func (h *history) last(second int64, n int) []uint32 {
	n = min(n, seconds)
	past := make([]uint32, 0, n)
	for at := second - int64(n) + 1; at <= second; at++ {
		past = append(past, h.past[(at+seconds)%seconds])
	}
	return past
}

// timing is how long a store takes, and how often it fails.
type timing struct {
	asked, errors atomic.Uint64
	sum           atomic.Int64 // nanoseconds
	longest       atomic.Int64
	count, failed history
	mean, most    time.Duration // of the second that has passed
	before        int64         // sum when the last second had passed
}

func (t *timing) add(took time.Duration, err error) {
	t.asked.Add(1)
	if err != nil {
		t.errors.Add(1)
	}
	t.sum.Add(int64(took))
	for {
		most := t.longest.Load()
		if int64(took) <= most || t.longest.CompareAndSwap(most, int64(took)) {
			return
		}
	}
}

func (t *timing) pass(second int64) {
	sum := t.sum.Load()
	t.count.pass(second, t.asked.Load())
	t.failed.pass(second, t.errors.Load())
	t.mean, t.most = 0, time.Duration(t.longest.Swap(0))
	if n := t.count.past[second%seconds]; n > 0 {
		t.mean = time.Duration((sum - t.before) / int64(n))
	}
	t.before = sum
}
