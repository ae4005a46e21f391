package core

import (
	"fmt"
	"math"
)

// WindowMeter judges counts that a store keeps in its own way: one number for
// each window of a FixedWindow or SlidingWindow limit whose windows begin at
// multiples of their length. Its methods may be called concurrently.
type WindowMeter struct{ m meter }

// NewWindowMeter returns the meter of a limit. The error wraps [ErrConfig]
// where the limit is not valid, or its windows are not aligned.
func NewWindowMeter(l Limit) (WindowMeter, error) {
	if err := l.Validate(); err != nil {
		return WindowMeter{}, err
	}
	if !l.Aligned {
		return WindowMeter{}, fmt.Errorf("%w: Aligned: false: only aligned windows can be counted apart, not %v", ErrConfig, l)
	}
	return WindowMeter{newMeter(l)}, nil
}

// Start returns the beginning of the window that a time is in, both in
// microseconds since the Unix epoch.
func (w WindowMeter) Start(now int64) int64 { return floorTo(now, w.m.window) }

// Window returns the length of a window in microseconds.
func (w WindowMeter) Window() int64 { return w.m.window }

// Judge says what the limit makes of cost more hits at the time now, when
// current have been counted in its window and previous in the one before.
// Negative counts are none.
func (w WindowMeter) Judge(now, current, previous, cost int64) Result {
	c := cell{t: w.Start(now), a: count32(current), b: count32(previous)}
	if w.m.algorithm == FixedWindow {
		c.b = 0
	}
	if c.a == 0 && c.b == 0 {
		c = cell{}
	}
	var words [cellWords]uint64
	c.store(words[:])
	var r Result
	report(&r, &w.m, words[:], now, cost, w.m.admits(words[:], now, cost))
	return r
}

// Weight returns the part of the previous window that a window ending now
// still covers, from 0 to 1.
func (w WindowMeter) Weight(now int64) float64 {
	return float64(w.m.window-(now-w.Start(now))) / float64(w.m.window)
}

func count32(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
