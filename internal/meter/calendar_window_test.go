package meter

import (
	"testing"
	"time"
)

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
		m.Charge(w, row.charged, 3)
		if far := m.Far(w, row.now); far != row.far {
			t.Errorf("%v at %v: far is %v", time.UnixMicro(row.charged).UTC(), time.UnixMicro(row.now).UTC(), far)
		}
		if m.Advance(w, row.now); m.Remaining(w, row.now) != 2 || m.Expiry(w) != row.end {
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
		m.Charge(w, at, 3)
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
		m.Charge(w, at, 3)
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
