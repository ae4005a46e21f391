package core

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units are the window lengths that limits text knows.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// isMonth reports whether the window of limits text is a month, which has no fixed length.
func isMonth(window string) bool {
	unit := strings.TrimPrefix(smallLetters(window), "1")
	return unit == "month" || unit == "months"
}

// ParseLimits reads limits from text. Each is a quota, a slash or "per", and a window. Commas
// separate limits.
//
//	10/s, 120/m, 240/h
//	100 per minute, 5 per 15 minutes
//	1000/h token_bucket burst=50, 240/h bucketed_window precision=1m
//	1000/day Europe/Berlin, 5000 per week America/New_York, 10000/month
//
// A window is a unit, or a whole number and a unit: ms, s (sec, second), m (min, minute), h (hour),
// d (day, 24 hours), w (week) or month, also in the plural and in capitals, except M. A space
// between number and unit needs "per".
//
// Options may follow the window: the name of an algorithm ([Algorithm.String]), aligned, burst=50,
// precision=1s, name=api. A time zone after a day or week makes calendar windows: see [Limit.In]. A
// month is a calendar month, in UTC without a zone.
//
// An error wraps [ErrConfig] and names the place in the text. [Limit.Validate] checks every limit.
func ParseLimits(text string) ([]Limit, error) {
	var limits []Limit
	var errs []error
	for i, item := range strings.Split(text, ",") {
		l, err := parseLimit(item)
		if err == nil {
			err = l.Validate()
		}
		if err != nil {
			errs = append(errs, eachError(err, func(one error) error {
				return fmt.Errorf("limits text %q, item %d: %w", text, i+1, one)
			}))
		}
		limits = append(limits, l)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return limits, nil
}

func parseLimit(item string) (Limit, error) {
	words := strings.Fields(item)
	if len(words) == 0 {
		return Limit{}, fmt.Errorf("%w: empty", ErrConfig)
	}
	quota, window, words, found := cutWindow(words)
	if !found {
		return Limit{}, fmt.Errorf("%w: %q: want a quota, a slash and a window, such as 10/s", ErrConfig, strings.TrimSpace(item))
	}
	var l Limit
	var err error
	if l.Quota, err = parseCount("quota", quota, MaxQuota); err != nil {
		return Limit{}, err
	}
	if isMonth(window) {
		l.Window, l.Zone = Month, time.UTC
	} else if l.Window, err = parseWindow("window", window); err != nil {
		return Limit{}, err
	}
	seen := map[string]bool{}
	for _, word := range words {
		kind, err := l.parseOption(word)
		if err != nil {
			return Limit{}, err
		}
		if seen[kind] {
			return Limit{}, fmt.Errorf("%w: %q: %s is given twice", ErrConfig, word, kind)
		}
		seen[kind] = true
	}
	if l.Zone != nil && !seen["algorithm"] {
		l.Algorithm = FixedWindow
	}
	if l.Window == Month && l.Zone != nil && !isMonth(window) {
		return Limit{}, fmt.Errorf("%w: window: %q: is not a month: write %d/month %v", ErrConfig, window, l.Quota, l.Zone)
	}
	return l, nil
}

// cutWindow returns the quota and the window of 10/s, 10 / s, 10 per s or 10 per 5 s, and the words
// behind them.
func cutWindow(words []string) (quota, window string, rest []string, found bool) {
	quota, window, found = strings.Cut(words[0], "/")
	rest = words[1:]
	if !found && len(rest) > 0 {
		if strings.EqualFold(rest[0], "per") {
			rest, found = rest[1:], true
			if len(rest) > 1 && strings.Trim(rest[0], "0123456789") == "" {
				return quota, rest[0] + rest[1], rest[2:], true
			}
		} else if window, found = strings.CutPrefix(rest[0], "/"); found {
			rest = rest[1:]
		}
	}
	if found && window == "" && len(rest) > 0 {
		window, rest = rest[0], rest[1:]
	}
	return quota, window, rest, found
}

// parseOption reads one word after the window and returns what it sets.
func (l *Limit) parseOption(word string) (kind string, err error) {
	if word == "aligned" {
		l.Aligned = true
		return word, nil
	}
	for a := SlidingWindow; a.known(); a++ {
		if word == a.String() {
			l.Algorithm = a
			return "algorithm", nil
		}
	}
	kind, value, option := strings.Cut(word, "=")
	if slash := strings.Contains(word, "/"); !option {
		if l.Zone, err = loadZone(word); err == nil || slash {
			return "zone", err
		}
	}
	switch kind {
	case "burst":
		if l.Burst, err = parseCount(kind, value, MaxQuota); err == nil && l.Burst == 0 {
			err = fmt.Errorf("%w: burst: 0: must be 1 or more", ErrConfig)
		}
	case "precision":
		l.Precision, err = parseWindow(kind, value)
	case "name":
		if l.Name = value; value == "" {
			err = fmt.Errorf("%w: name: \"\": %s", ErrConfig, nameRule)
		}
	default:
		err = fmt.Errorf("%w: %q: not an algorithm, a time zone, aligned, burst=, precision= or name=", ErrConfig, word)
	}
	return kind, err
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

// parseCount reads a whole number of decimal digits alone.
func parseCount(field, s string, most int64) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if errors.Is(err, strconv.ErrRange) && '0' <= s[0] {
		return 0, fmt.Errorf("%w: %s: %q: must be from 0 to %d", ErrConfig, field, s, most)
	}
	if err != nil || s[0] < '0' {
		return 0, fmt.Errorf("%w: %s: %q: want a whole number", ErrConfig, field, s)
	}
	return n, nil
}

func parseWindow(field, s string) (time.Duration, error) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n := int64(1)
	if digits > 0 {
		n, _ = strconv.ParseInt(s[:digits], 10, 64) // more digits than an int64 has: the largest one, which is too long for each unit
	}
	if s[digits:] == "M" {
		return 0, fmt.Errorf("%w: %s: %q: may mean minutes or months: write m or month", ErrConfig, field, s)
	}
	unit, known := units[smallLetters(s[digits:])]
	if u := smallLetters(s[digits:]); u == "month" || u == "months" {
		return 0, fmt.Errorf("%w: %s: %q: has no fixed length: write month for one month of the calendar, or days such as 30d", ErrConfig, field, s)
	}
	if !known {
		return 0, fmt.Errorf("%w: %s: %q: want a unit such as s, m, h, d, w or month, or a whole number and a unit", ErrConfig, field, s)
	}
	if n == 0 || n > math.MaxInt64/int64(unit) {
		return 0, fmt.Errorf("%w: %s: %q: must be from %v to 366 days", ErrConfig, field, s, MinWindow)
	}
	return time.Duration(n) * unit, nil
}

// smallLetters lowers A to Z only: the Kelvin sign is not a k.
func smallLetters(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}
