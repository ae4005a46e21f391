package live

import "github.com/floodgate-go/floodgate/internal/stripes"

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
