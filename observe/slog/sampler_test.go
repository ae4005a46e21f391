package slogobserve

import (
	"testing"
	"time"
)

// The lines go on after a clock was set back by more than the time between two of them.
func TestLinesAfterTheClockWasSetBack(t *testing.T) {
	const every = time.Second
	now := time.Unix(1_764_000_000, 0)
	for back, want := range map[time.Duration]bool{-every: true, 0: false, 1: false, every: false, every + 1: true, time.Hour: true} {
		var s sampler
		if _, ok := s.admit(now, every); !ok {
			t.Fatal("the first line is left out")
		}
		if _, ok := s.admit(now.Add(-back), every); ok != want {
			t.Errorf("the clock is set back by %v: a line %t, want %t", back, ok, want)
		}
	}
}
