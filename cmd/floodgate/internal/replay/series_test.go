package replay

import (
	"testing"
	"time"
)

// Points are a minute wide until there are too many; then each is twice as wide and
// has what both had.
func TestASeriesGetsWiderPoints(t *testing.T) {
	var s series
	start := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	for i := range maxPoints {
		p := s.at(start.Add(time.Duration(i) * time.Minute))
		p.Allowed++
		p.Denied += 2
		p.DryRunDenied += 3
	}
	if len(s.points) != maxPoints || s.width != time.Minute || !s.start.Equal(start.Truncate(time.Minute)) {
		t.Fatalf("%d points of %v from %v", len(s.points), s.width, s.start)
	}
	s.at(start.Add(maxPoints*time.Minute)).Allowed++ // one too many
	if len(s.points) != maxPoints/2+1 || s.width != 2*time.Minute {
		t.Fatalf("%d points of %v", len(s.points), s.width)
	}
	for i, p := range s.points[:maxPoints/2] {
		if p != (Point{Allowed: 2, Denied: 4, DryRunDenied: 6}) {
			t.Fatalf("point %d is %+v", i, p)
		}
	}
	if p := s.points[maxPoints/2]; p != (Point{Allowed: 1}) {
		t.Errorf("the last point is %+v", p)
	}
	s.at(start.Add(-time.Hour)).Denied++ // before the first
	if s.points[0].Denied != 5 {
		t.Errorf("the first point is %+v", s.points[0])
	}
	s.at(start.Add(100 * maxPoints * time.Minute)).Denied = 9 // several times too far
	if s.width != 128*time.Minute || len(s.points) > maxPoints || s.points[len(s.points)-1].Denied != 9 {
		t.Errorf("%d points of %v", len(s.points), s.width)
	}
	odd := series{start: start, width: time.Minute, points: []Point{{Allowed: 1}, {Allowed: 2}, {Allowed: 4}}}
	if odd.halve(); len(odd.points) != 2 || odd.points[0].Allowed != 3 || odd.points[1].Allowed != 4 {
		t.Errorf("of three points: %+v", odd.points)
	}
	even := series{start: start, width: time.Minute, points: make([]Point, 4)}
	if even.halve(); len(even.points) != 2 {
		t.Errorf("of four points: %+v", even.points)
	}
}
