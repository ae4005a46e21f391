package stripes

import (
	"sync"
	"testing"
)

// However many goroutines add, nothing is lost, and no number adds to another one.
func TestSumsAreExact(t *testing.T) {
	var n Numbers
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 8_000 {
				n.Add(i % 4)
				n.Add(7)
			}
		})
	}
	wg.Wait()
	for i, want := range []uint64{32_000, 32_000, 32_000, 32_000, 0, 0, 0, 128_000} {
		if got := n.Sum(i); got != want {
			t.Errorf("number %d is %d, want %d", i, got, want)
		}
	}
}

// Goroutines that run at the same time add to several stripes.
func TestGoroutinesHaveSeveralStripes(t *testing.T) {
	const goroutines = 64
	var n Numbers
	var added, done sync.WaitGroup
	added.Add(goroutines)
	for range goroutines {
		done.Go(func() {
			n.Add(0)
			added.Done()
			added.Wait() // nobody's stack is given to another one
		})
	}
	done.Wait()
	used := 0
	for s := range n {
		if n[s][0].Load() > 0 {
			used++
		}
	}
	if used < 2 {
		t.Errorf("%d goroutines use %d of %d stripes", goroutines, used, stripes)
	}
}
