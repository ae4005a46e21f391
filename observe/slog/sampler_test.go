package slogobserve

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The lines go on after a clock was set back by more than the time between two of them.
func TestLinesAfterTheClockWasSetBack(t *testing.T) {
	const every = time.Second
	now := time.Unix(1_764_000_000, 0)
	for back, want := range map[time.Duration]bool{-every: true, 0: false, 1: false, every: false, every + 1: true, time.Hour: true} {
		var s sampler
		if _, ok := s.allow(now, every); !ok {
			t.Fatal("the first line is left out")
		}
		if _, ok := s.allow(now.Add(-back), every); ok != want {
			t.Errorf("the clock is set back by %v: a line %t, want %t", back, ok, want)
		}
	}
}

// Of many requests at the same time, one writes the line, and the others are counted.
func TestOneOfManyWritesTheLine(t *testing.T) {
	const rounds, many = 2000, 8
	for range rounds {
		var s sampler
		var lines, leftOut atomic.Int64
		var ready, done sync.WaitGroup
		ready.Add(many)
		for range many {
			done.Go(func() {
				ready.Done()
				ready.Wait()
				if n, ok := s.allow(time.Unix(1_764_000_000, 0), time.Second); ok {
					lines.Add(1)
					leftOut.Add(int64(n))
				}
			})
		}
		done.Wait()
		if n := leftOut.Load() + int64(s.leftOut.Load()); lines.Load() != 1 || n != many-1 {
			t.Fatalf("%d lines, %d left out, of %d requests", lines.Load(), n, many)
		}
	}
}
