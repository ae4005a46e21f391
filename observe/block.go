package observe

import (
	"sync/atomic"
	"unsafe"
)

// block is a few numbers that many processors add to. Each has one stripe for itself, if
// all goes well, so that they do not wait for each other's cache lines.
type block [stripes]stripe

// stripe is as long as a cache line.
type stripe [8]atomic.Uint64

// stripes bounds the memory of a block: to 1 KiB.
const stripes = 16

// add adds 1 to the i-th number. The goroutine's stack chooses the stripe: goroutines that
// run at the same time have different stacks.
func (b *block) add(i int) {
	var here byte
	h := uint64(uintptr(unsafe.Pointer(&here))) * 0x9e3779b97f4a7c15 //nolint:gosec // a number, never a pointer again
	b[h>>60][i&7].Add(1)
}

// sum returns the i-th number.
func (b *block) sum(i int) (n uint64) {
	for s := range b {
		n += b[s][i].Load()
	}
	return n
}
