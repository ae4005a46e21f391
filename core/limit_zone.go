package core

import (
	"fmt"
	"strconv"
	"time"
)

// In returns the limit with the days, the weeks from Monday or the months of a
// time zone as its windows, for a limit that [PerDay], [PerWeek] or [PerMonth]
// returns. The default algorithm becomes FixedWindow, the only one that has such
// windows: see [Limit.Zone]. New returns an error for any other limit, and for a
// zone that is nil or has no name.
//
// Names of zones are those of the IANA time zone database. [time.LoadLocation]
// finds them on most systems. A program that also runs on systems without them,
// such as a container made from scratch, imports time/tzdata.
func (l Limit) In(zone *time.Location) Limit {
	if zone == nil {
		zone = noZone
	}
	l.Zone = zone
	if l.Algorithm == SlidingWindow {
		l.Algorithm = FixedWindow
	}
	return l
}

// noZone is the Zone of a limit whose zone is missing. Validate returns an error
// for it, because it has no name.
var noZone = time.FixedZone("", 0)

// calendarUnits are the windows of the calendar, by their nominal lengths.
var calendarUnits = map[time.Duration]string{24 * time.Hour: "day", 7 * 24 * time.Hour: "week", Month: "month"}

const maxZone = 64

// checkZone reports what is wrong with the limit's time zone.
func (l Limit) checkZone(bad func(field string, value any, why string)) {
	if l.Zone == nil {
		return
	}
	name := l.Zone.String()
	if l.Algorithm == Leases {
		bad("Zone", name, "in_flight has no windows: leave it out")
		return
	}
	switch {
	case name == "":
		bad("Zone", `""`, `must have a name: write time.UTC, or what time.LoadLocation("Europe/Berlin") returns`)
	case l.Zone == time.Local || name == "Local":
		bad("Zone", "Local", `is another zone on another machine: write time.UTC, or what time.LoadLocation("Europe/Berlin") returns`)
	case !validZone(name):
		bad("Zone", strconv.Quote(name), "the name must be 1 to 64 of the characters A-Z a-z 0-9 _ + - /, and begin with a capital letter, as in Europe/Berlin")
	}
	if l.Algorithm != FixedWindow {
		bad("Zone", name, fmt.Sprintf("only fixed_window has the windows of a calendar, not %s: leave out the algorithm or the zone", l.Algorithm))
	}
	if calendarUnits[l.Window] == "" {
		bad("Zone", name, fmt.Sprintf("a window of %s is not a day, a week or a month, and only these have a time zone", shortDuration(l.Window)))
	}
	if l.Aligned {
		bad("Aligned", true, "the windows of a limit with a Zone are aligned to its calendar: leave it out")
	}
	if !l.Lockout.none() {
		bad("Zone", name, "a limit with a Lockout begins its windows at the first hit: leave one of the two out")
	}
}

// validZone reports whether a name has the form of those of the IANA time zone
// database.
func validZone(s string) bool {
	if s == "" || len(s) > maxZone || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '+' && c != '-' && c != '/' {
			return false
		}
	}
	return true
}

// loadZone returns the time zone of a word of limits text.
func loadZone(word string) (*time.Location, error) {
	if validZone(word) && word != "Local" {
		if zone, err := time.LoadLocation(word); err == nil {
			return zone, nil
		}
	}
	return nil, fmt.Errorf("%w: zone: %q: cannot be loaded: write the name of a time zone such as Europe/Berlin or UTC; a system without time zone files needs a program that imports time/tzdata", ErrConfig, word)
}

// per describes the limit's window: 1h, or "month Europe/Berlin".
func (l Limit) per() string {
	if unit := calendarUnits[l.Window]; unit != "" && l.Zone != nil {
		return unit + " " + l.Zone.String()
	}
	return shortDuration(l.Window)
}

// windowName returns the part of a limit's name that tells it from the others of
// its rule: 1h or month.
func (l Limit) windowName() string {
	if l.Algorithm == Leases {
		return "in-flight"
	}
	if l.Zone == nil {
		return shortDuration(l.Window)
	}
	return calendarUnits[l.Window]
}
