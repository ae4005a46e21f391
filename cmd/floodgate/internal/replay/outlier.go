package replay

import (
	"slices"
	"time"
)

// A line whose time is wrong would end all windows, or hold them open: the
// requests behind it would be decided at one moment. So each time is compared
// with those of the lines around it, of which the medians are taken.
const (
	neighbours = 32                   // lines on each side
	farBehind  = 24 * time.Hour       // long requests are logged at their end, with the time of their beginning
	farApart   = 366 * 24 * time.Hour // beside which a gap in a log is no gap any more: no window is longer
)

// window holds lines back until those that follow them are known.
type window struct {
	before []time.Time // of the last lines that were taken, at most neighbours
	held   []parsed
	newest time.Time
}

// wrong reports whether the time of the oldest held line is far from the times
// of the lines around it.
func (w *window) wrong(tolerance time.Duration) bool {
	at := w.held[0].entry.Time
	if len(w.before) > 0 && !at.After(w.newest.Add(tolerance)) && at.After(w.newest.Add(-farBehind)) {
		return false // as nearly all are
	}
	var after []time.Time
	for i := 1; i < len(w.held); i++ {
		after = append(after, w.held[i].entry.Time)
	}
	earlier, known := median(w.before)
	later, follow := median(after)
	behind := max(tolerance, farBehind)
	switch {
	case known && follow:
		return at.Sub(earlier) > tolerance && at.Sub(later) > tolerance || earlier.Sub(at) > behind && later.Sub(at) > behind
	case follow: // the first lines of the first log
		return at.Sub(later) > tolerance || later.Sub(at) > farApart
	case known: // the last line of the last log
		return at.Sub(earlier) > farApart || earlier.Sub(at) > behind
	}
	return false
}

// taken notes that the oldest line that is held has been decided.
func (w *window) taken(at time.Time) {
	if len(w.before) == neighbours {
		w.before = w.before[1:]
	}
	w.before = append(w.before, at)
	if at.After(w.newest) {
		w.newest = at
	}
}

func median(times []time.Time) (time.Time, bool) {
	if len(times) == 0 {
		return time.Time{}, false
	}
	sorted := slices.SortedFunc(slices.Values(times), time.Time.Compare)
	return sorted[(len(sorted)-1)/2], true
}
