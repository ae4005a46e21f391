package core

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/floodgate-go/floodgate/internal/meter"
)

// Capacity returns the most hits that can be taken at once: the Burst of a
// TokenBucket that has one, else the Quota. Decision.Remaining of a key that has
// not been used is the Capacity.
func (l Limit) Capacity() int64 { return l.capacity() }

// capacity is Capacity without a copy of the limit.
func (l *Limit) capacity() int64 {
	if l.Algorithm == TokenBucket && l.Burst > 0 {
		return l.Burst
	}
	return l.Quota
}

// Validate reports everything that is wrong with the limit, or nil. The error
// wraps [ErrConfig] and names each field and its value. New calls it.
func (l Limit) Validate() error {
	var errs []error
	bad := func(field string, value any, why string) {
		errs = append(errs, &fieldError{field, fmt.Sprintf("%v: %s", value, why)})
	}
	if l.Name != "" && !validName(l.Name) {
		bad("Name", strconv.Quote(l.Name), nameRule)
	}
	if !l.Algorithm.known() {
		bad("Algorithm", uint8(l.Algorithm), "is not one of SlidingWindow, FixedWindow, BucketedWindow, SlidingLog, TokenBucket, Leases")
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
	if l.Algorithm == SlidingLog || l.Algorithm == Leases {
		return MaxLogQuota
	}
	return MaxQuota
}

func (l Limit) checkWindow(bad func(field string, value any, why string)) {
	switch {
	case l.Algorithm == Leases && l.Window < minLease:
		bad("Window", l.Window, fmt.Sprintf("is the lease of in_flight: must be %v or more, such as DefaultLease, which InFlight sets", minLease))
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
	case l.Window/l.Precision > MaxBuckets:
		bad("Precision", l.Precision, fmt.Sprintf("makes %d buckets of the Window (%v), and %d is the most", l.Window/l.Precision, l.Window, MaxBuckets))
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
	case l.Quota > 0 && l.Window > 0 && meter.Less(l.Quota, MaxRefill.Microseconds(), l.Window.Microseconds(), l.Burst):
		bad("Burst", l.Burst, fmt.Sprintf("at %d in %v the bucket would take more than 100 years to fill", l.Quota, l.Window))
	}
}

const (
	maxName  = 64
	nameRule = "must be 1 to 64 of the characters A-Z a-z 0-9 _ . -"
)

// validName returns whether a name needs no escaping in a structured field
// (RFC 9651, section 3.3.3), in a log and in the key of any store.
func validName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// String describes the limit, such as "10 per 1s",
// "1000 per 1h (token_bucket, burst 50)", "10000 per month Europe/Berlin" or
// "10 in flight".
func (l Limit) String() string {
	if l.Algorithm == Leases {
		return l.inFlight()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d per %s", l.Quota, l.per())
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

// shortDuration writes whole days, hours, minutes, seconds and milliseconds with one
// unit, as ParseLimits reads them, and anything else as time.Duration does: 1d, 90m,
// 1500ms, 1.5ms.
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
