package meter

import "time"

// The windows of a Calendar, by their nominal length in microseconds.
const (
	Day   = 24 * int64(time.Hour/time.Microsecond)
	Week  = 7 * Day
	Month = 31 * Day
)

const microsecond = 1_000_000 // microseconds in a second

// longestChange is more than clock changes add to a window: a zone that crosses the date line has a
// day twice, and summer time ends once.
const longestChange = Day + Day/8

// zoneSpan is more than any zone's offset from UTC, in seconds: the largest offset of the time zone
// database is below 16 hours.
const zoneSpan = 24 * 60 * 60

// civilWindow is a window of a calendar.
type civilWindow struct {
	start, end int64 // microseconds
	length     uint32
}

// civil returns the start of the window of a Calendar that a time is in, and its length in seconds.
// The meters of a limit share the latest one.
func (m *Meter) civil(now int64) (start int64, length uint32) {
	w := m.latest.Load()
	if w == nil || now < w.start || now >= w.end {
		first, last := CivilWindow(m.Window, m.Zone, floorDiv(now, microsecond))
		w = &civilWindow{first * microsecond, last * microsecond, uint32(last - first)}
		m.latest.Store(w)
	}
	return w.start, w.length
}

// CivilWindow returns the window of a calendar that a time is in: its start, and the start of the
// next one, in seconds since the Unix epoch. The nominal length is Day, Week or Month.
//
// The windows of a zone are in the order of its dates. A window begins when the zone's clock first
// reaches the midnight of its first day or, if the clock skips that, a later time. If the clock is
// then set back over midnight, the repeated hour of the day before belongs to the window that has
// begun. A date that the zone has skipped has no window.
func CivilWindow(nominal int64, zone *time.Location, now int64) (start, end int64) {
	year, month, day := time.Unix(now, 0).In(zone).Date()
	monday := day - int(midnight(year, month, day).Weekday()+6)%7
	begin := func(n int) int64 { // of the n-th window after the one of the date
		switch nominal {
		case Month:
			return firstInstant(midnight(year, month+time.Month(n), 1), zone)
		case Week:
			return firstInstant(midnight(year, month, monday+7*n), zone)
		default:
			return firstInstant(midnight(year, month, day+n), zone)
		}
	}
	// The clock may have been set back since the window of a later date began.
	start, end = begin(0), begin(1)
	for n := 2; end <= now; n++ {
		start, end = end, begin(n)
	}
	return start, end
}

func midnight(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// firstInstant returns the first time at which the clock of a zone shows what a clock in UTC shows
// at midnight, or later.
func firstInstant(midnight time.Time, zone *time.Location) int64 {
	wall := midnight.Unix()
	t := wall - zoneSpan // before it, in every zone
	for {
		at := time.Unix(t, 0).In(zone)
		_, offset := at.Zone()
		reached := max(t, wall-int64(offset))
		_, change := at.ZoneBounds()
		// ZoneBounds ends a leap year a day early. For the rest of it, the offset is looked up for
		// each minute.
		until := max(change.Unix(), t+60)
		if change.IsZero() || reached < until {
			return reached
		}
		t = until
	}
}
