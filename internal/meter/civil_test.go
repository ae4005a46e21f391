package meter

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"
)

// plainFirst returns the first minute at which the clock of a zone shows a date,
// or a later one: it looks at every quarter of an hour, in which every midnight of
// these years lies, and then at every minute before the one that it has found.
func plainFirst(zone *time.Location, year int, month time.Month, day int) time.Time {
	want := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	reached := func(t time.Time) bool {
		y, m, d := t.In(zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(want)
	}
	t := want.Add(-20 * time.Hour)
	for !reached(t) {
		t = t.Add(15 * time.Minute)
	}
	for t = t.Add(-14 * time.Minute); !reached(t); {
		t = t.Add(time.Minute)
	}
	return t
}

type plainYear struct {
	nominal int64
	zone    string
	year    int
}

var plainYears = map[plainYear][]int64{} // first instants of windows, in seconds

// plainFirsts returns the first instants of the windows that begin in a year, and
// of some before and after it.
func plainFirsts(nominal int64, zone *time.Location, year int) []int64 {
	k := plainYear{nominal, zone.String(), year}
	if plainYears[k] == nil {
		for day := time.Date(year-1, 11, 25, 0, 0, 0, 0, time.UTC); day.Year() < year+1 || day.Month() < 3; day = day.AddDate(0, 0, 1) {
			if nominal == Day || nominal == Week && day.Weekday() == time.Monday || nominal == Month && day.Day() == 1 {
				plainYears[k] = append(plainYears[k], plainFirst(zone, day.Year(), day.Month(), day.Day()).Unix())
			}
		}
	}
	return plainYears[k]
}

// plainWindow returns the window that a time is in, in microseconds.
func plainWindow(nominal int64, zone *time.Location, now int64) (start, end int64) {
	firsts := plainFirsts(nominal, zone, time.UnixMicro(now).UTC().Year())
	i := sort.Search(len(firsts), func(i int) bool { return firsts[i]*second > now })
	return firsts[i-1] * second, firsts[i] * second
}

func randomZone(r *rand.Rand) *time.Location {
	z, err := time.LoadLocation(zones[r.IntN(len(zones))])
	if err != nil {
		panic(err)
	}
	return z
}

// Windows are those that the plain model finds, near every change of a
// zone's clock and at any other time.
func TestWindowsOfZones(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	years := []int{1993, 2011, 2016, 2018, 2019, 2023, 2024, 2025, 2028, 2044, 2045}
	for range 100 {
		z, nominal, year := randomZone(r), []int64{Day, Week, Month}[r.IntN(3)], years[r.IntN(len(years))]
		for range 20 {
			at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix() + r.Int64N(364*86400)
			if _, change := time.Unix(at, 0).In(z).ZoneBounds(); !change.IsZero() && change.Year() == year && r.IntN(2) == 0 {
				at = change.Unix() + r.Int64N(4*86400) - 2*86400
			}
			start, end := CivilWindow(nominal, z, at)
			wantStart, wantEnd := plainWindow(nominal, z, at*second)
			if start*second != wantStart || end*second != wantEnd {
				t.Fatalf("seed %d, %v, %v: from %v to %v, want from %v to %v", seed, z, time.Unix(at, 0).In(z), time.Unix(start, 0).In(z), time.Unix(end, 0).In(z),
					time.UnixMicro(wantStart).In(z), time.UnixMicro(wantEnd).In(z))
			}
		}
	}
}

// Each window is written as its start and its end.
func TestWindowsThatAreNotAsLongAsOthers(t *testing.T) {
	for _, row := range []struct {
		zone    string
		nominal int64
		at      string // in the zone
		want    string
	}{
		{"Europe/Berlin", Day, "2024-03-31T12:00", "2024-03-31T00:00+01:00 23h0m0s"},
		{"Europe/Berlin", Day, "2024-10-27T12:00", "2024-10-27T00:00+02:00 25h0m0s"},
		{"Europe/Berlin", Week, "2024-03-31T12:00", "2024-03-25T00:00+01:00 167h0m0s"},
		{"Europe/Berlin", Month, "2024-02-29T23:59", "2024-02-01T00:00+01:00 696h0m0s"},
		{"Europe/Berlin", Month, "2024-10-31T23:59", "2024-10-01T00:00+02:00 745h0m0s"},
		{"Australia/Lord_Howe", Day, "2024-04-07T12:00", "2024-04-07T00:00+11:00 24h30m0s"},
		{"America/Sao_Paulo", Day, "2018-11-04T12:00", "2018-11-04T01:00-02:00 23h0m0s"}, // there was no midnight
		{"America/Sao_Paulo", Day, "2018-11-03T12:00", "2018-11-03T00:00-03:00 24h0m0s"},
		{"America/Sao_Paulo", Day, "2019-02-16T12:00", "2019-02-16T00:00-02:00 25h0m0s"}, // 23:00 came twice
		{"Africa/Cairo", Day, "2024-04-26T12:00", "2024-04-26T01:00+03:00 23h0m0s"},
		{"Asia/Beirut", Week, "2024-04-01T12:00", "2024-04-01T00:00+03:00 168h0m0s"},
		{"Asia/Beirut", Day, "2024-03-31T12:00", "2024-03-31T01:00+03:00 23h0m0s"},
		{"Pacific/Apia", Day, "2011-12-29T12:00", "2011-12-29T00:00-10:00 24h0m0s"}, // the 30th was skipped
		{"Pacific/Apia", Day, "2011-12-31T12:00", "2011-12-31T00:00+14:00 24h0m0s"},
		{"Pacific/Apia", Month, "2011-12-31T12:00", "2011-12-01T00:00-10:00 720h0m0s"},
		{"Asia/Kathmandu", Month, "2025-02-10T12:00", "2025-02-01T00:00+05:45 672h0m0s"},
		// The last day of a leap year, which package time takes for the next year's.
		{"Europe/Berlin", Day, "2044-12-31T12:00", "2044-12-31T00:00+01:00 24h0m0s"},
		{"Europe/Berlin", Month, "2044-12-31T12:00", "2044-12-01T00:00+01:00 744h0m0s"},
		// At 00:01 the clock was set back to 23:01. The minute after the first
		// midnight belongs to the new day, and so does the hour that came twice.
		{"America/St_Johns", Day, "2006-10-29T12:00", "2006-10-29T00:00-02:30 25h0m0s"},
		{"America/St_Johns", Day, "2006-10-28T12:00", "2006-10-28T00:00-02:30 24h0m0s"},
	} {
		z := zone(t, row.zone)
		at, err := time.ParseInLocation("2006-01-02T15:04", row.at, z)
		if err != nil {
			t.Fatal(err)
		}
		start, end := CivilWindow(row.nominal, z, at.Unix())
		got := fmt.Sprint(time.Unix(start, 0).In(z).Format("2006-01-02T15:04Z07:00"), " ", time.Duration(end-start)*time.Second)
		if got != row.want {
			t.Errorf("%s, %s: %s, want %s", row.zone, row.at, got, row.want)
		}
		for _, inside := range []int64{start, start + 59, start + 1800, end - 1} {
			if s, e := CivilWindow(row.nominal, z, inside); s != start || e != end {
				t.Errorf("%s: %v is in another window", row.zone, time.Unix(inside, 0).In(z))
			}
		}
		if s, _ := CivilWindow(row.nominal, z, end); s != end {
			t.Errorf("%s: %v does not begin a window", row.zone, time.Unix(end, 0).In(z))
		}
	}
}
