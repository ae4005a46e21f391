package main

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Sample is what several measurements of one thing have given.
type Sample struct {
	Values []float64
	Note   string // in place of a value, or beside it
}

// median is the middle value.
func (s Sample) median() float64 {
	if len(s.Values) == 0 {
		return math.NaN()
	}
	v := slices.Sorted(slices.Values(s.Values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// spread is the smallest and the largest value.
func (s Sample) spread() (least, most float64) {
	return slices.Min(s.Values), slices.Max(s.Values)
}

// operation does something n times, as the i-th of several that do so at the
// same time.
type operation func(i, n int)

// timed returns the nanoseconds of one operation, in the wall clock's time over
// the operations of all workers together, and the allocations of one.
func timed(workers, n int, op operation) (ns, allocs float64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	if workers == 1 {
		op(0, n)
	} else {
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { op(i, n/workers) })
		}
		wg.Wait()
	}
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n)
}

// measure adds measurements of an operation, each about as long as the effort
// says.
func (e effort) measure(workers int, op operation, ns, allocs *Sample) {
	n := 1000 * workers
	for { // as many as take long enough
		took, _ := timed(workers, n, op)
		if total := time.Duration(took * float64(n)); total >= e.each/4 || n > 1<<30 {
			n = max(workers, int(float64(n)*float64(e.each)/float64(max(total, 1))))
			break
		}
		n *= 4
	}
	for range e.reps {
		took, each := timed(workers, n, op)
		ns.Values = append(ns.Values, took)
		if allocs != nil {
			allocs.Values = append(allocs.Values, each)
		}
	}
}
