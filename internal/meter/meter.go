// Package meter is the arithmetic of the rate limiting algorithms: what a limit
// allows, what it charges, how long a caller waits. It has no lock and no I/O. The
// in-process store, the stores that compare and swap, and synced use it. The
// script of stores/redis has a twin of each algorithm.
//
// Each algorithm has a file of its own, with a type that implements arithmetic:
//
//	append      the state's bytes in a stored value; read reads them
//	advance     bring the state to the time of a decision, and drop what has left the window
//	allows      whether a cost is allowed
//	charge      add hits
//	wait        how long until a cost is allowed
//	outlook     what is left, and for how long
//	refund      give hits back; grant gives back the newest ones
//	expiry      when the state means the same as none
//
// Times are microseconds since the Unix epoch and counts are whole numbers.
// Nothing is rounded except where an algorithm's formula says so.
package meter

import "time"

// Meter is a Limit prepared for counting: the arithmetic of one algorithm over a
// state of a few words. A Meter is a value and never changes; its methods may be
// called concurrently, each with a state of its own.
//
// The algorithms that keep a cell have a state of two words, a Lockout has three. All zero is the
// state of a key never seen. The state of a BucketedWindow or a SlidingLog is nil for a key never
// seen, and grows (see Words).
//
// The order of calls is: Advance, then any of Allows, Remaining, Wait and
// Outlook, then at most one of Charge, Refund and Grant, after which Remaining, Wait
// and Outlook hold again.
type Meter struct {
	arithmetic
	algorithm Algorithm
	aligned   bool
	quota     int64
	capacity  int64 // most hits at once: the burst of a token bucket, else the quota
	own       share // of the limit itself: see With
	window    int64
	precision int64
	buckets   int64 // full buckets in a window
	narrow    bool  // twice window × capacity, and window × quota, fit in 62 bits
	ahead     int64 // of a narrow token bucket: a debt that takes less time to pay off is not far
	lockout   *lockoutTerms
	calendar  *calendar
}

// share is a burst and its quota.
type share struct{ capacity, quota int64 }

// MostFixedWords is the size of the largest state that does not grow.
const MostFixedWords = lockoutWords

// New returns the meter of a limit.
func New(l Limit) Meter {
	m := Meter{
		arithmetic: algorithms[l.Algorithm].arithmetic,
		algorithm:  l.Algorithm,
		aligned:    l.Aligned,
		quota:      l.Quota,
		capacity:   l.Capacity,
		own:        share{l.Capacity, l.Quota},
		window:     l.Window,
	}
	if l.Algorithm == BucketedWindow {
		m.precision = l.Precision
		m.buckets = m.window / m.precision
	}
	if l.Algorithm == Lockout {
		m.lockout = newLockoutTerms(l.Waits)
	}
	if l.Algorithm == Calendar {
		m.calendar = &calendar{zone: l.Zone, nominal: l.Window}
	}
	m.narrows()
	return m
}

// Algorithm returns the limit's algorithm.
func (m *Meter) Algorithm() Algorithm { return m.algorithm }

// Quota returns the most hits in a window.
func (m *Meter) Quota() int64 { return m.quota }

// Capacity returns the most hits that can be taken at once.
func (m *Meter) Capacity() int64 { return m.capacity }

// Window returns the window's length, of a Calendar its nominal length.
func (m *Meter) Window() int64 { return m.window }

// Precision returns the length of a bucket, 0 if the algorithm has none.
func (m *Meter) Precision() int64 { return m.precision }

// Buckets returns the number of buckets in a window, 0 if the algorithm has none.
func (m *Meter) Buckets() int64 { return m.buckets }

// Grows reports whether the state has no fixed size.
func (m *Meter) Grows() bool { return m.algorithm.Grows() }

// Grows reports whether the states of the algorithm have no fixed size.
func (a Algorithm) Grows() bool { return algorithms[a].grows }

// FixedWords returns the size of a state that does not grow. If it grows, it is
// the room for a reference to it.
func (m *Meter) FixedWords() int {
	switch {
	case m.Grows():
		return 1
	case m.algorithm == Lockout:
		return lockoutWords
	default:
		return cellWords
	}
}

// Words returns how many words the state needs to take a charge of cost.
func (m *Meter) Words(w []uint64, cost int64) int { return m.arithmetic.words(m, w, cost) }

// Grow copies the state from one slice to a longer, zeroed one.
func (m *Meter) Grow(to, from []uint64) { m.arithmetic.grow(to, from) }

// Advance brings the state to the time now: hits that have left the window are
// dropped. It returns the time of the decision: now, or the state's own time if
// that is later, so that the time of a key never moves back. The state of a token
// bucket has no time of its own.
//
// Processes whose clocks differ share a state, so that its time may be ahead of now. If it is less
// than one window ahead, it is used, and waits are counted from now. If it is one window ahead or
// more, far is true: only a step of the clock explains it. The time is then moved back to now, so
// that no step denies a key for longer than the limit itself can.
func (m *Meter) Advance(w []uint64, now int64) (at int64, far bool) {
	return m.arithmetic.advance(m, w, now)
}

// anchor returns the start of the window that a first hit at now opens.
func (m *Meter) anchor(now int64) int64 {
	if m.aligned {
		return floorTo(now, m.window)
	}
	return now
}

// Charge adds cost hits at now, even if the limit denies them. The state must have room: see Words.
// Counts stop at MaxCount, a token bucket owes at most twice its burst, and a log keeps its newest
// hits, as many as the quota or as it has.
func (m *Meter) Charge(w []uint64, now, cost int64) {
	if cost > 0 {
		m.arithmetic.charge(m, w, now, min(cost, MaxCount))
	}
}

// Refund takes back cost hits that were charged at the time at, when reset was
// what Outlook returned after the charge.
func (m *Meter) Refund(w []uint64, now, at, reset, cost int64) {
	if cost > 0 {
		m.arithmetic.refund(m, w, now, at, reset, cost)
	}
}

// Grant gives back up to n of the hits that count at now, the newest first, so that those that come
// back soonest still do. The state must have been advanced to now. The rest of n is lost: no state
// gets better than that of a key never seen. Lockouts, and token buckets with a quota of 0, do not
// change.
func (m *Meter) Grant(w []uint64, now, n int64) {
	if n > 0 {
		m.arithmetic.grant(m, w, now, n)
	}
}

// Expiry returns a time from which the state means the same as none.
func (m *Meter) Expiry(w []uint64) int64 { return m.arithmetic.expiry(m, w) }

// Blank reports whether a state means the same as none at now. Buckets that have
// been advanced since the last hit are blank before they expire, once they are
// empty.
func (m *Meter) Blank(w []uint64, now int64) bool {
	return m.Expiry(w) <= now || m.algorithm == BucketedWindow && bucketsTotal(w) == 0
}

// Clock returns a clock of microseconds since the Unix epoch. If clock is nil,
// it is the process's monotonic clock, which does not follow changes of the wall
// clock.
func Clock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + int64(time.Since(start)/time.Microsecond) }
}

// WorstCase returns the most hits that some window of the limit's length can
// hold.
func (m *Meter) WorstCase() int64 { return m.arithmetic.worstCase(m) }

// Lifetime returns the longest time from a charge to the expiry of the state
// that the charge leaves.
func (m *Meter) Lifetime() int64 { return m.arithmetic.lifetime(m) }

// MostBytes returns how large the state can become with the limit's own quota, if it grows;
// 0 if it does not.
func (m *Meter) MostBytes() int64 {
	switch {
	case !m.Grows():
		return 0
	default:
		return 8 * int64(m.Words(nil, m.quota))
	}
}
