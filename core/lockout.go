package core

import (
	"fmt"
	"time"
)

// Lockout adds escalating waits to a FixedWindow limit. Each time the whole Quota
// has been used, a wait begins: First, then First × Factor, First × Factor², up to
// Max. It is made for the failures of a login form.
//
// The hit that uses the Quota up is allowed and begins the wait. During the wait
// all hits are denied, and denied hits do not make it longer. After the wait the
// count starts anew. If a refund lowers the count during the wait (the login
// succeeded), the wait ends, and counts as never begun.
//
// The zero value is no lockout.
type Lockout struct {
	// First is the first wait: MinWindow to MaxWindow, in whole microseconds.
	First time.Duration
	// Factor is how many times as long the next wait is: 1 (all are as long as
	// the first) to MaxLockoutFactor. 0 means 2.
	Factor int64
	// Max is the longest wait, from First to MaxWindow, in whole microseconds.
	// 0 means an hour, or First if that is longer.
	Max time.Duration
	// Decay is the time after the end of a wait in which one wait is forgotten, so
	// that the next wait is shorter: MinWindow to MaxWindow, in
	// whole microseconds. 0 means Max.
	Decay time.Duration
}

// MaxLockoutFactor is the largest Factor of a Lockout.
const MaxLockoutFactor = 1000

func (l Lockout) none() bool { return l == Lockout{} }

// filled returns the lockout with the defaults for its zero values.
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
	if k.Factor < 0 || k.Factor > MaxLockoutFactor {
		bad("Lockout.Factor", k.Factor, fmt.Sprintf("must be from 1 to %d, or 0 for 2", MaxLockoutFactor))
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
