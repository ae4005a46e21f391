package core

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Algorithm is how the hits of a window are counted.
type Algorithm uint8

const (
	// SlidingWindow counts the current window in full, and the previous one by the part that a
	// window ending now covers. The default.
	SlidingWindow Algorithm = iota
	// FixedWindow counts from the first hit to the end of the window, then starts again. Bursts
	// before and after the end can add up to 2 × Quota.
	FixedWindow
	// BucketedWindow keeps a count for each Precision.
	BucketedWindow
	// SlidingLog keeps the time of every hit. Exact, at 8 bytes a hit: see [MemoryConfig].
	SlidingLog
	// TokenBucket allows a burst, then hits at an even rate (GCRA).
	TokenBucket
)

// The range of a Limit's fields.
const (
	MinWindow   = time.Millisecond     // shortest Window and Precision
	MaxWindow   = 366 * 24 * time.Hour // longest Window
	MaxQuota    = 1<<31 - 1            // largest Quota and Burst
	MaxLogQuota = 10_000               // largest Quota of a SlidingLog, which keeps every hit

	maxBuckets       = 4096
	maxRefill        = 36_500 * 24 * time.Hour
	maxLockoutFactor = 1000
)

// Month is the Window of a limit for calendar months: see [Limit.Zone].
const Month = 31 * 24 * time.Hour

// Limit is a quota of hits for a window. Its durations are whole microseconds. New checks it.
type Limit struct {
	// Name names the limit in response headers and logs. It has the form of Config.Name and is
	// unique in the limiter. Empty means the rule's name, followed by "-" and the window if the
	// rule has several limits.
	Name string
	// Quota is the number of hits allowed in a Window, 0 (none) to MaxQuota; for SlidingLog to
	// MaxLogQuota.
	Quota int64
	// Window is the time for which Quota is allowed: MinWindow to MaxWindow.
	Window    time.Duration
	Algorithm Algorithm
	// Aligned begins windows at multiples of Window since the Unix epoch (UTC), rather than at each
	// key's first hit. Only for FixedWindow and SlidingWindow.
	Aligned bool
	// Burst is the most hits allowed at once, up to MaxQuota. 0 means Quota. Window × Burst /
	// Quota, the time to fill it, is at most 100 years. Only for TokenBucket.
	Burst int64
	// Precision is the length of a bucket: MinWindow or more. It must divide Window into at most
	// 4,096 buckets. Only for BucketedWindow.
	Precision time.Duration
	// Zone makes the windows calendar days, weeks (from Monday) or months of a time zone, for a
	// Window of 24 hours, 7 days or [Month]: see [Limit.In]. A day may have 23 hours. Only for
	// FixedWindow, without Aligned and Lockout.
	//
	// The zone's name is part of a counter's name: it must be the same in processes that share
	// counters. [time.Local] is an error.
	Zone *time.Location
	// Lockout adds escalating waits. Only for FixedWindow.
	Lockout Lockout
}

// PerSecond returns a SlidingWindow limit of quota hits per second.
func PerSecond(quota int64) Limit { return Limit{Quota: quota, Window: time.Second} }

// PerMinute returns a SlidingWindow limit of quota hits per minute.
func PerMinute(quota int64) Limit { return Limit{Quota: quota, Window: time.Minute} }

// PerHour returns a SlidingWindow limit of quota hits per hour.
func PerHour(quota int64) Limit { return Limit{Quota: quota, Window: time.Hour} }

// PerDay returns a SlidingWindow limit of quota hits per 24 hours. [Limit.In] makes it a calendar
// day.
func PerDay(quota int64) Limit { return Limit{Quota: quota, Window: 24 * time.Hour} }

// PerWeek returns a SlidingWindow limit of quota hits per 7 days. [Limit.In] makes it a calendar
// week.
func PerWeek(quota int64) Limit { return Limit{Quota: quota, Window: 7 * 24 * time.Hour} }

// PerMonth returns a FixedWindow limit of quota hits per calendar month in UTC. [Limit.In] changes
// the time zone.
func PerMonth(quota int64) Limit {
	return Limit{Quota: quota, Window: Month, Algorithm: FixedWindow, Zone: time.UTC}
}

// String returns the name of the algorithm in limits text, such as sliding_window.
func (a Algorithm) String() string { return a.meter().String() }

// WorstCase returns the most hits in any window of the limit's length: see the package's table. A
// Lockout allows its quota once, and again for each wait that fits in the window, the shortest
// first. If processes that share a store have clocks that differ by d, less than the window, it
// bounds the hits in a time of Window - d. The limit must be valid.
func (l Limit) WorstCase() int64 {
	m := meter.New(l.meter())
	return m.WorstCase()
}

// Lifetime returns how long a shared store keeps a counter after its last hit. The limit must be
// valid.
func (l Limit) Lifetime() time.Duration {
	m := meter.New(l.meter())
	return meter.Duration(m.Lifetime())
}

// Capacity returns the most hits that can be taken at once: the Burst if there is one, else the
// Quota; 0 if that is 0.
func (l Limit) Capacity() int64 {
	if l.Algorithm == TokenBucket && l.Burst > 0 && l.Quota > 0 {
		return l.Burst
	}
	return l.Quota
}

// Validate reports everything that is wrong with the limit. The error wraps [ErrConfig] and names
// each field and its value.
func (l Limit) Validate() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, &fieldError{field, fmt.Sprintf("%v: %s", value, why)})
	}
	if l.Name != "" && !validName(l.Name) {
		bad("Name", strconv.Quote(l.Name), nameRule)
	}
	if !l.Algorithm.known() {
		bad("Algorithm", uint8(l.Algorithm), "is not one of SlidingWindow, FixedWindow, BucketedWindow, SlidingLog, TokenBucket")
	}
	if most := l.maxQuota(); l.Quota < 0 || l.Quota > most {
		bad("Quota", l.Quota, fmt.Sprintf("must be from 0 to %d for %s", most, l.Algorithm))
	}
	l.checkWindow(bad)
	l.checkBurst(bad)
	l.checkLockout(bad)
	l.checkZone(bad)
	if l.Aligned && l.Algorithm != FixedWindow && l.Algorithm != SlidingWindow {
		bad("Aligned", true, fmt.Sprintf("only fixed_window and sliding_window have windows to align, not %s", l.Algorithm))
	}
	return errors.Join(errs...)
}

func (l Limit) maxQuota() int64 {
	if l.Algorithm == SlidingLog {
		return MaxLogQuota
	}
	return MaxQuota
}

func (l Limit) checkWindow(bad func(field string, value any, why string)) {
	switch {
	case 0 < l.Window && l.Window < MinWindow:
		bad("Window", l.Window, fmt.Sprintf("must be from %v to 366 days: a number without a unit counts nanoseconds, so write 10*time.Second for 10 seconds", MinWindow))
	case l.Window < MinWindow || l.Window > MaxWindow:
		bad("Window", l.Window, fmt.Sprintf("must be from %v to 366 days", MinWindow))
	case l.Window%time.Microsecond != 0:
		bad("Window", l.Window, "must be whole microseconds")
	}
	switch {
	case l.Algorithm != BucketedWindow:
		if l.Precision != 0 {
			bad("Precision", l.Precision, fmt.Sprintf("only bucketed_window has one, not %s", l.Algorithm))
		}
	case l.Precision == 0:
		bad("Precision", l.Precision, fmt.Sprintf("bucketed_window needs the length of a bucket, which must divide the Window (%v): a sixtieth of it, for instance", l.Window))
	case l.Precision < MinWindow || l.Precision > l.Window:
		bad("Precision", l.Precision, fmt.Sprintf("must be from %v to the Window (%v)", MinWindow, l.Window))
	case l.Precision%time.Microsecond != 0:
		bad("Precision", l.Precision, "must be whole microseconds")
	case l.Window%l.Precision != 0:
		bad("Precision", l.Precision, fmt.Sprintf("must divide the Window (%v)", l.Window))
	case l.Window/l.Precision > maxBuckets:
		bad("Precision", l.Precision, fmt.Sprintf("makes %d buckets of the Window (%v), and %d is the most", l.Window/l.Precision, l.Window, maxBuckets))
	}
}

func (l Limit) checkBurst(bad func(field string, value any, why string)) {
	switch {
	case l.Algorithm != TokenBucket:
		if l.Burst != 0 {
			bad("Burst", l.Burst, fmt.Sprintf("only token_bucket has one, not %s", l.Algorithm))
		}
	case l.Burst < 0 || l.Burst > MaxQuota:
		bad("Burst", l.Burst, fmt.Sprintf("must be from 0 (the Quota) to %d", MaxQuota))
	case l.Quota > 0 && l.Window > 0 && meter.Less(l.Quota, maxRefill.Microseconds(), l.Window.Microseconds(), l.Burst):
		bad("Burst", l.Burst, fmt.Sprintf("at %d in %v the bucket would take more than 100 years to fill", l.Quota, l.Window))
	}
}

const (
	maxName  = 64
	nameRule = "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -"
)

// validName reports whether a name needs no escaping in a structured field (RFC 9651, section
// 3.3.3), a log or a store's key.
func validName(s string) bool { return s != "" && len(s) <= maxName && alphanumeric(s, "_.-") }

// alphanumeric reports whether s has only ASCII letters, ASCII digits and bytes of others.
func alphanumeric(s, others string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

// String describes the limit, such as "10 per 1s", "1000 per 1h (token_bucket, burst 50)" or "10000
// per month Europe/Berlin".
func (l Limit) String() string {
	var b strings.Builder
	b.WriteString(hitsText(l.Quota) + " per " + l.per())
	var more []string
	if l.Algorithm != SlidingWindow && (l.Zone == nil || l.Algorithm != FixedWindow) {
		more = append(more, l.Algorithm.String())
	}
	if l.Burst > 0 {
		more = append(more, "burst "+strconv.FormatInt(l.Burst, 10))
	}
	if l.Precision > 0 {
		more = append(more, "precision "+shortDuration(l.Precision))
	}
	if l.Aligned {
		more = append(more, "aligned")
	}
	if !l.Lockout.none() {
		more = append(more, l.Lockout.String())
	}
	if len(more) > 0 {
		b.WriteString(" (" + strings.Join(more, ", ") + ")")
	}
	return b.String()
}

// shortDuration writes a duration as ParseLimits reads it: 1d, 90m, 1500ms. If no unit fits, it
// writes it as time.Duration does.
func shortDuration(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if d >= u.length && d%u.length == 0 {
			return strconv.FormatInt(int64(d/u.length), 10) + u.name
		}
	}
	return d.String()
}

// In returns the limit with calendar windows in a time zone: see [Limit.Zone]. The limit must be
// one of [PerDay], [PerWeek] or [PerMonth]. Its algorithm becomes FixedWindow. New rejects a nil
// zone.
//
// A system without zone files needs an import of time/tzdata.
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

// noZone is the Zone of a limit whose zone is missing. Validate rejects it, because it has no name.
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

// validZone reports whether a name that is not empty looks like one of the IANA time zone database.
func validZone(s string) bool {
	return len(s) <= maxZone && 'A' <= s[0] && s[0] <= 'Z' && alphanumeric(s, "_+-/")
}

// per describes the limit's window: 1h, or "month Europe/Berlin".
func (l Limit) per() string {
	if unit := calendarUnits[l.Window]; unit != "" && l.Zone != nil {
		return unit + " " + l.Zone.String()
	}
	return shortDuration(l.Window)
}

// windowName returns the part of a limit's name that differs in a rule: 1h or month.
func (l Limit) windowName() string {
	if l.Zone == nil {
		return shortDuration(l.Window)
	}
	return calendarUnits[l.Window]
}

// Lockout adds escalating waits to a FixedWindow limit. The hit that uses up the Quota is allowed
// and begins a wait of First, the next time of First × Factor, and so on up to Max. Hits during the
// wait are denied and do not lengthen it. After it the count starts at 0. A refund during the wait
// ends it, as if it had never begun. The zero value is no lockout.
type Lockout struct {
	// First is the first wait: MinWindow to MaxWindow.
	First time.Duration
	// Factor multiplies each next wait: 1 to 1,000. 0 means 2.
	Factor int64
	// Max is the longest wait, First or more. 0 means an hour, or First if that is longer.
	Max time.Duration
	// Decay is the time without a wait after which one wait is forgotten. 0 means Max.
	Decay time.Duration
}

func (l Lockout) none() bool { return l == Lockout{} }

// filled returns the lockout with its defaults.
func (l Lockout) filled() Lockout {
	if l.Factor == 0 {
		l.Factor = 2
	}
	if l.Max == 0 {
		l.Max = max(time.Hour, l.First)
	}
	if l.Factor == 1 {
		l.Max = l.First
	}
	if l.Decay == 0 {
		l.Decay = l.Max
	}
	return l
}

// checkLockout reports what is wrong with the limit's lockout.
func (l Limit) checkLockout(bad func(field string, value any, why string)) {
	k := l.Lockout
	if k.none() {
		return
	}
	if l.Algorithm != FixedWindow {
		bad("Lockout", k, fmt.Sprintf("only fixed_window can have one, not %s", l.Algorithm))
	}
	if l.Aligned {
		bad("Aligned", true, "a limit with a Lockout begins its windows at the first hit")
	}
	length := func(field string, d, least time.Duration) {
		switch {
		case d < least || d > MaxWindow:
			bad(field, d, fmt.Sprintf("must be from %v to 366 days", least))
		case d%time.Microsecond != 0:
			bad(field, d, "must be whole microseconds")
		}
	}
	length("Lockout.First", k.First, MinWindow)
	if k.Factor < 0 || k.Factor > maxLockoutFactor {
		bad("Lockout.Factor", k.Factor, fmt.Sprintf("must be from 1 to %d, or 0 for 2", maxLockoutFactor))
	}
	if k.Max != 0 {
		length("Lockout.Max", k.Max, max(k.First, MinWindow))
	}
	if k.Decay != 0 {
		length("Lockout.Decay", k.Decay, MinWindow)
	}
}

// String describes the lockout, such as "waits of 30s × 2 up to 1h".
func (l Lockout) String() string {
	if l.none() {
		return "none"
	}
	l = l.filled()
	if l.Factor == 1 {
		return "waits of " + shortDuration(l.First)
	}
	return fmt.Sprintf("waits of %s × %d up to %s", shortDuration(l.First), l.Factor, shortDuration(l.Max))
}
