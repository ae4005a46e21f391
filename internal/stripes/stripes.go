// Package stripes counts what several processors count at the same time.
package stripes

import (
	"sync/atomic"
	"unsafe"
)

// Numbers are eight numbers that many processors add to. Each processor has one stripe
// for itself, if all goes well, so that they do not wait for each other's cache lines.
// The zero value is eight times 0. The methods may be called concurrently.
type Numbers [stripes]stripe

// stripe is as long as a cache line.
type stripe [8]atomic.Uint64

// stripes bounds the memory of Numbers: to 1 KiB.
const stripes = 16

// Add adds 1 to the i-th number. The goroutine's stack chooses the stripe: goroutines that run
// at the same time have different stacks.
func (n *Numbers) Add(i int) {
	var here byte
	h := uint64(uintptr(unsafe.Pointer(&here))) * 0x9e3779b97f4a7c15 //nolint:gosec // a number, never a pointer again
	n[h>>60][i&7].Add(1)
}

// Sum returns the i-th number.
func (n *Numbers) Sum(i int) (sum uint64) {
	for s := range n {
		sum += n[s][i].Load()
	}
	return sum
}
