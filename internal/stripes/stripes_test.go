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

// Add returns how often its stripe has been added to, each count once.
func TestAddCountsItsStripe(t *testing.T) {
	var n Numbers
	seen, many := map[uint64]int{}, 0
	for range 1000 {
		seen[n.Add(3)]++
	}
	for _, times := range seen {
		many += times
		if times > stripes {
			t.Errorf("a count was returned %d times", times)
		}
	}
	if many != 1000 || seen[0] > 0 {
		t.Errorf("%d counts, of these %d are 0", many, seen[0])
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
