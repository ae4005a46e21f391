package meter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"testing/synctest"
	"time"
)

// Stored states and the Redis script have these numbers: they never change.
func TestNamesAndNumbers(t *testing.T) {
	for i, name := range []string{"sliding_window", "fixed_window", "bucketed_window", "sliding_log", "token_bucket", "lockout", "calendar_window", "unknown_algorithm"} {
		if got := Algorithm(i).String(); got != name {
			t.Errorf("algorithm %d is %s, want %s", i, got, name)
		}
		a, aligned := Identity{Algorithm: Algorithm(i)}, Identity{Algorithm: Algorithm(i), Aligned: true}
		if a.Kind() != uint8(2*i) || aligned.Kind() != uint8(2*i+1) {
			t.Errorf("%s: kinds %d and %d", name, a.Kind(), aligned.Kind())
		}
	}
	if Algorithms != 7 {
		t.Errorf("%d algorithms", Algorithms)
	}
}

// Stored states of a calendar name their zone by these numbers.
func TestTheNumbersOfZones(t *testing.T) {
	for name, want := range map[string]int64{"UTC": 107690233289514, "Europe/Berlin": 17905129485066} {
		l := Limit{Algorithm: Calendar, Window: Day, Zone: zone(t, name)}
		if got := l.Identity(); got.Detail() != want || got.Zone != name || got.Kind() != 12 {
			t.Errorf("%s: %+v, %d, want %d", name, got, got.Detail(), want)
		}
	}
	seen := map[int64]string{}
	for _, name := range zones {
		n := Identity{Algorithm: Calendar, Zone: name}.Detail()
		if seen[n] != "" || n < 0 || n >= 1<<48 {
			t.Errorf("%s has the number %d, as %q", name, n, seen[n])
		}
		seen[n] = name
	}
}

// Windows says of counts what the meter says of the same hits.
func TestWindowsAgreeWithTheMeter(t *testing.T) {
	for _, l := range []Limit{{Quota: 10, Capacity: 10, Window: minute, Aligned: true}, {Quota: 10, Capacity: 10, Window: minute, Algorithm: FixedWindow, Aligned: true}} {
		w, ok := NewWindows(l)
		if !ok {
			t.Fatal(l)
		}
		m := New(l)
		const start = 29_400_000 * 60_000_000 // a multiple of a minute
		for prev := range int64(12) {
			for cur := range int64(12) {
				for _, e := range []int64{0, 1, 20_000_000, 59_999_999} {
					for cost := range int64(12) {
						words := []uint64{0, 0}
						if prev > 0 {
							m.Charge(new(Result), words, start-1, prev)
						}
						m.Advance(words, start+e)
						if cur > 0 {
							m.Charge(new(Result), words, start+e, cur)
						}
						var want Result
						m.Decide(&want, words, start+e, cost)
						m.Report(&want, words, start+e, cost)
						var got Result
						if w.Take(&got, start, start+e, cur, prev, cost, true); got != want {
							t.Fatalf("%v, %d and %d before, %d µs on, a peek for %d: %+v, want %+v", l, cur, prev, e, cost, got, want)
						}
						if want.Allowed {
							m.Charge(&want, words, start+e, cost)
							m.Report(&want, words, start+e, cost)
						}
						if w.Take(&got, start, start+e, cur, prev, cost, false); got != want {
							t.Fatalf("%v, %d and %d before, %d µs on, cost %d: %+v, want %+v", l, cur, prev, e, cost, got, want)
						}
					}
				}
			}
		}
	}
}

// Counts of single windows say nothing of windows that begin at a hit.
func TestOnlyAlignedWindowsAreCountedApart(t *testing.T) {
	if _, ok := NewWindows(Limit{Quota: 1, Capacity: 1, Window: minute}); ok {
		t.Error("a limit whose windows are not aligned is taken")
	}
}

// The weight of the previous window falls from 1 to 0.
func TestTheWeightOfTheWindowBefore(t *testing.T) {
	w, _ := NewWindows(Limit{Quota: 10, Capacity: 10, Window: minute, Aligned: true})
	const start = 29_400_000 * 60_000_000
	for after, want := range map[int64]float64{0: 1, 15 * second: 0.75, 45 * second: 0.25, minute: 1} {
		if got := w.Weight(start + after); got != want {
			t.Errorf("%d µs after the start: %v, want %v", after, got, want)
		}
	}
}

// Counts beyond what a state can hold count as the most that it can.
func TestCountsThatNoStateHolds(t *testing.T) {
	w, _ := NewWindows(Limit{Quota: 10, Capacity: 10, Window: minute, Algorithm: FixedWindow, Aligned: true})
	for count, want := range map[int64]bool{-1 << 40: true, -1: true, 9: true, 10: false, 1<<32 - 1: false, 1 << 32: false, 1<<32 + 1: false, 1 << 40: false} {
		var r Result
		if w.Take(&r, 0, 0, count, 0, 1, true); r.Allowed != want {
			t.Errorf("%d hits: allowed %v, want %v", count, r.Allowed, want)
		}
	}
}

// The process's clock counts microseconds since 1970, and so does one that is given.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, given := Clock(nil), Clock(time.Now)
		for _, d := range []time.Duration{0, time.Microsecond, 3 * time.Second, 1000 * time.Hour} {
			time.Sleep(d)
			if want := time.Now().UnixMicro(); own() != want || given() != want {
				t.Errorf("after %v: %d and %d, want %d", d, own(), given(), want)
			}
		}
	})
}

// A state ahead of the clock is believed in the next window, and not in a later
// one, however short the months are.
func TestAMonthAheadOfTheClock(t *testing.T) {
	at := func(month time.Month, day, h int) int64 {
		return time.Date(2025, month, day, h, 0, 0, 0, time.UTC).UnixMicro()
	}
	m := New(Limit{Quota: 5, Capacity: 5, Window: Month, Algorithm: Calendar, Zone: time.UTC})
	for _, row := range []struct {
		charged, now int64
		far          bool
		end          int64 // of the window that the hits are in then
	}{
		{at(2, 9, 1), at(1, 31, 23), false, at(3, 1, 0)},
		{at(2, 9, 1), at(1, 1, 1), false, at(3, 1, 0)},
		{at(2, 9, 1), at(1, 1, 0), true, at(2, 1, 0)},   // a whole window ahead
		{at(3, 9, 1), at(1, 31, 23), true, at(2, 1, 0)}, // less than 31 days ahead, and two windows
		{at(3, 9, 1), at(2, 28, 23), false, at(4, 1, 0)},
		{at(3, 9, 1), at(3, 1, 0), false, at(4, 1, 0)},
	} {
		w := make([]uint64, cellWords)
		m.Charge(new(Result), w, row.charged, 3)
		_, far := m.Advance(w, row.now)
		if far != row.far {
			t.Errorf("%v at %v: far is %v", time.UnixMicro(row.charged).UTC(), time.UnixMicro(row.now).UTC(), far)
		}
		if m.Remaining(w, row.now) != 2 || m.Expiry(w) != row.end {
			t.Errorf("%v at %v: %d left until %v, want until %v", time.UnixMicro(row.charged).UTC(), time.UnixMicro(row.now).UTC(),
				m.Remaining(w, row.now), time.UnixMicro(m.Expiry(w)).UTC(), time.UnixMicro(row.end).UTC())
		}
	}
}

// A meter that has been asked about one window knows the one before as well. Hits
// of a later window are not refunded into an earlier one.
func TestAMeterGoesBackAWindow(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: Day, Algorithm: Calendar, Zone: time.UTC})
	today := floorTo(now0, Day)
	for _, at := range []int64{today + hour, today - hour, today + hour} {
		w := make([]uint64, cellWords)
		m.Charge(new(Result), w, at, 3)
		if want := floorTo(at, Day) + Day; m.Expiry(w) != want {
			t.Errorf("a hit at %d counts until %d, want %d", at, m.Expiry(w), want)
		}
		for _, other := range []int64{at - Day, at + Day} {
			if m.Refund(w, at, other, 0, 1); m.Remaining(w, at) != 2 {
				t.Errorf("a hit of the time %d is given back at %d", other, at)
			}
		}
	}
}

// Before 1970, too, a meter knows which day it is.
func TestDaysBefore1970(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: Day, Algorithm: Calendar, Zone: time.UTC})
	for day := range int64(3) {
		at := -100*Day + day*Day + hour
		w := make([]uint64, cellWords)
		m.Charge(new(Result), w, at, 3)
		if want := floorTo(at, Day) + Day; m.Expiry(w) != want {
			t.Errorf("a hit at %d counts until %d, want %d", at, m.Expiry(w), want)
		}
	}
}

// Bytes that are no state of a calendar are not read.
func TestDamagedStatesOfACalendar(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: Week, Algorithm: Calendar, Zone: time.UTC})
	for _, row := range []struct {
		cell
		bad bool
	}{
		{cell{}, false},
		{cell{t: now0, a: 1, b: 7 * 86400}, false},
		{cell{t: now0, a: MaxCount, b: 8*86400 + 3*3600}, false},
		{cell{t: now0, a: MaxCount + 1, b: 7 * 86400}, true},
		{cell{t: now0, a: 1, b: 0}, true},
		{cell{t: now0, a: 1, b: 8*86400 + 3*3600 + 1}, true},
	} {
		w := make([]uint64, cellWords)
		row.cell.store(w)
		r := &Reader{Rest: m.AppendState(nil, w)}
		if m.ReadState(r); r.Bad != row.bad {
			t.Errorf("%+v: bad is %v", row.cell, r.Bad)
		}
	}
}

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

// A log has the newest hits, however often they have moved: its room is as small as it can be.
func TestALogFollowsAList(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		quota := 1 + r.Int64N(5)
		m := New(Limit{Quota: quota, Capacity: quota, Window: second, Algorithm: SlidingLog})
		w := make([]uint64, logHeader+quota)
		var list []int64
		for now, step := int64(now0), 0; step < 60; step++ {
			m.Advance(w, now)
			for len(list) > 0 && list[0] <= now-second {
				list = list[1:]
			}
			if got := logHits(w); !slices.EqualFunc(got, list, func(hit uint64, at int64) bool { return int64(hit) == at }) {
				t.Fatalf("seed %d, step %d: hits at %d, want %d", seed, step, got, list)
			}
			cost := 1 + r.Int64N(quota+2) // also above the quota: the newest hits stay
			m.Charge(new(Result), w, now, cost)
			for range cost {
				list = append(list, now)
			}
			list = list[max(0, int64(len(list))-quota):]
			now += r.Int64N(second / 2)
		}
	}
}

// Of a log with a hit that is far ahead of the clock, the hits of earlier times keep them.
func TestAHitAheadOfTheClockMovesAlone(t *testing.T) {
	m := New(Limit{Quota: 5, Capacity: 5, Window: minute, Algorithm: SlidingLog})
	w := m.Room(nil, 5)
	m.Charge(new(Result), w, now0-second, 1)
	m.Charge(new(Result), w, now0+hour, 1)
	if _, far := m.Advance(w, now0); !far || !slices.Equal(logHits(w), []uint64{now0 - uint64(second), now0}) {
		t.Errorf("far %v, hits at %d", far, logHits(w))
	}
}

// The waits are first × factorⁿ, cut to the longest, and no number overflows.
func TestLockoutWaits(t *testing.T) {
	for _, c := range []struct {
		Waits
		want []int64
	}{
		{Waits{First: 30 * second, Longest: hour, Factor: 2, Decay: hour}, []int64{30 * second, minute, 2 * minute, 4 * minute, 8 * minute, 16 * minute, 32 * minute, hour, hour}},
		{Waits{First: minute, Longest: minute, Factor: 1, Decay: hour}, []int64{minute, minute}},
		{Waits{First: second, Longest: maxWindow, Factor: 1000, Decay: hour}, []int64{second, 1000 * second, 1_000_000 * second, maxWindow, maxWindow}},
		{Waits{First: 3, Longest: 10, Factor: 3, Decay: hour}, []int64{3, 9, 10, 10}},
		{Waits{First: 10_010_496, Longest: maxWindow, Factor: 1024, Decay: hour}, []int64{10_010_496, 10_010_496 << 10, 10_010_496 << 20, maxWindow}},
	} {
		k := c.Waits
		for i, want := range c.want {
			if got := k.length(uint32(i)); got != want {
				t.Errorf("%+v: wait %d is %d µs, want %d", c.Waits, i, got, want)
			}
		}
		if got := k.length(maxStrikes); got != c.want[len(c.want)-1] {
			t.Errorf("%+v: after many strikes %d µs", c.Waits, got)
		}
	}
	k := Waits{First: minWindow, Longest: maxWindow, Factor: 2, Decay: hour}
	if most := k.levels(); most > maxStrikes {
		t.Errorf("%d strikes are above what a stored state may have", most)
	}
}

// A window or a wait that began less than a window ahead of the clock is believed,
// and one that began a window ahead is moved back to now, with the same length.
func TestALockoutAheadOfTheClock(t *testing.T) {
	m := New(Limit{Quota: 2, Capacity: 2, Window: hour, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 2, Longest: hour, Decay: 10 * hour}})
	open := lockoutCell{start: now0, count: 1}
	locked := lockoutCell{start: now0, count: 2, strikes: 1, until: now0 + minute}
	over := lockoutCell{strikes: 2, until: now0 + 2*minute} // a wait of two minutes, which has ended
	for name, c := range map[string]struct {
		state, moved lockoutCell // moved: at now0 − hour
	}{
		"an open window": {open, lockoutCell{start: now0 - hour, count: 1}},
		"a wait":         {locked, lockoutCell{start: now0 - hour, count: 2, strikes: 1, until: now0 - hour + minute}},
		"an ended wait":  {over, lockoutCell{strikes: 2, until: now0 - hour + 2*minute}},
	} {
		w := make([]uint64, lockoutWords)
		c.state.store(w)
		if _, far := m.Advance(w, now0-hour+1); loadLockout(w) != c.state || far {
			t.Errorf("%s less than a window ahead: %+v", name, loadLockout(w))
		}
		if _, far := m.Advance(w, now0-hour); !far || loadLockout(w) != c.moved {
			t.Errorf("%s a window ahead becomes %+v, far %v, want %+v", name, loadLockout(w), far, c.moved)
		}
	}
}

// A refund ends a wait only if it makes room: not if the quota has been lowered
// and is used up still.
func TestARefundThatMakesNoRoomLeavesTheWait(t *testing.T) {
	limit := Limit{Quota: 5, Capacity: 5, Window: hour, Algorithm: Lockout, Waits: Waits{First: minute, Factor: 2, Longest: hour, Decay: hour}}
	full := New(limit)
	limit.Quota, limit.Capacity = 3, 3
	m := New(limit)
	for back, want := range map[int64]bool{1: true, 2: true, 3: false} {
		w := make([]uint64, lockoutWords)
		full.Charge(new(Result), w, now0, 5)
		m.Refund(w, now0+1, now0, 0, back)
		if got := loadLockout(w).locked(now0 + 1); got != want {
			t.Errorf("after a refund of %d of 5 hits and a quota of 3: locked %v, want %v", back, got, want)
		}
	}
}
