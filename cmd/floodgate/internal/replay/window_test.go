package replay

import (
	"testing"
	"time"

	"github.com/floodgate-go/floodgate/cmd/floodgate/internal/accesslog"
)

// A time is wrong if it is further from its neighbours than the bounds, and right if
// it is just as far.
func TestTheBoundsOfAWrongTime(t *testing.T) {
	const tolerance = 5 * time.Minute
	base := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	times := func(offsets ...time.Duration) (all []time.Time) {
		for _, o := range offsets {
			all = append(all, base.Add(o))
		}
		return all
	}
	for name, c := range map[string]struct {
		before, after []time.Time
		at            time.Duration // the last one that is right
		wrong         time.Duration // the first one that is not
	}{
		"ahead of both sides":                    {times(0, 0, 0), times(0, 0, 0), tolerance, tolerance + 1},
		"ahead of those behind it":               {times(0), times(time.Hour), time.Hour + tolerance, time.Hour + tolerance + 1},
		"ahead of an older median":               {times(0, 0, 48*time.Hour), times(-time.Hour, -time.Hour), tolerance, tolerance + 1},
		"behind those before it":                 {times(0), times(time.Hour), -24 * time.Hour, -24*time.Hour - 1},
		"behind those after it":                  {times(2 * time.Hour), times(0), -24 * time.Hour, -24*time.Hour - 1},
		"the first line, ahead":                  {nil, times(0, 0), tolerance, tolerance + 1},
		"the first line, behind":                 {nil, times(0, 0), -366 * 24 * time.Hour, -366*24*time.Hour - 1},
		"the last line, ahead":                   {times(0, 0), nil, 366 * 24 * time.Hour, 366*24*time.Hour + 1},
		"the last line, behind":                  {times(0, 0), nil, -24 * time.Hour, -24*time.Hour - 1},
		"the median is the lower of two":         {times(0, 0), times(0, 10*time.Hour), tolerance, tolerance + 1},
		"one late line is not the newest of all": {times(0, 0, time.Minute, 0), times(0, 0), time.Minute + tolerance, time.Minute + tolerance + 1},
	} {
		for at, want := range map[time.Duration]bool{c.at: false, c.wrong: true} {
			w := window{held: []parsed{{entry: accesslog.Entry{Time: base.Add(at)}}}}
			for _, b := range c.before {
				w.taken(b)
			}
			for _, a := range c.after {
				w.held = append(w.held, parsed{entry: accesslog.Entry{Time: a}})
			}
			if got := w.wrong(tolerance); got != want {
				t.Errorf("%s: %v is wrong: %t, want %t", name, at, got, want)
			}
		}
	}
	// A tolerance of more than a day holds in both directions.
	w := window{held: []parsed{{entry: accesslog.Entry{Time: base.Add(-40 * time.Hour)}}, {entry: accesslog.Entry{Time: base}}}}
	w.taken(base)
	if w.wrong(48*time.Hour) || !w.wrong(30*time.Hour) {
		t.Error("the tolerance is not that of a line that is behind")
	}
	// The year 1, which is the zero time, is no time of a line before the first.
	w = window{held: []parsed{{entry: accesslog.Entry{Time: time.Time{}.Add(time.Second)}}, {entry: accesslog.Entry{Time: base}}}}
	if !w.wrong(tolerance) {
		t.Error("the first line's time may be in the year 1")
	}
	if (&window{held: w.held[:1]}).wrong(tolerance) {
		t.Error("a line alone is wrong")
	}
}

// A window knows the newest time, and as many lines as it compares.
func TestAWindowForgetsOldLines(t *testing.T) {
	var w window
	base := time.Unix(1_800_000_000, 0)
	for i := range 3 * neighbours {
		w.taken(base.Add(time.Duration(i) * time.Second))
		if want := min(i+1, neighbours); len(w.before) != want || !w.before[len(w.before)-1].Equal(w.newest) {
			t.Fatalf("after %d lines %d are known, want %d", i+1, len(w.before), want)
		}
	}
	w.taken(base)
	if !w.newest.Equal(base.Add((3*neighbours - 1) * time.Second)) {
		t.Errorf("the newest is %v", w.newest)
	}
}

func TestMedians(t *testing.T) {
	if _, known := median(nil); known {
		t.Error("nothing has a median")
	}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, c := range []struct {
		times []time.Time
		want  int64
	}{{[]time.Time{at(5)}, 5}, {[]time.Time{at(9), at(1)}, 1}, {[]time.Time{at(9), at(1), at(5)}, 5}, {[]time.Time{at(4), at(3), at(2), at(1)}, 2}} {
		if m, known := median(c.times); !known || m.Unix() != c.want {
			t.Errorf("of %v: %v, want %d", c.times, m, c.want)
		}
	}
}
