package replay

import "time"

// maxPoints is the most points of a series; when a log is longer, two of them
// become one.
const maxPoints = 4096

// series counts over time, by the minute as long as that is not too many.
type series struct {
	start  time.Time // of the first point
	width  time.Duration
	points []Point
}

// at returns the point of a time. Times before the first are the first one's.
func (s *series) at(t time.Time) *Point {
	if s.points == nil {
		s.width = time.Minute
		s.start = t.Truncate(s.width)
	}
	i := max(0, int(t.Sub(s.start)/s.width))
	for i >= maxPoints {
		s.halve()
		i = int(t.Sub(s.start) / s.width)
	}
	for len(s.points) <= i {
		s.points = append(s.points, Point{})
	}
	return &s.points[i]
}

func (s *series) halve() {
	s.width *= 2
	half := make([]Point, (len(s.points)+1)/2)
	for i, p := range s.points {
		to := &half[i/2]
		to.Allowed += p.Allowed
		to.Denied += p.Denied
		to.DryRunDenied += p.DryRunDenied
	}
	s.points = half
}
