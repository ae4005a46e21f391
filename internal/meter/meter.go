// Package meter is the arithmetic of the rate limiting algorithms: what a limit allows, what it
// charges, how long a caller waits. It has no lock and no I/O. The in-process store, the stores
// that compare and swap, and synced use it. The script of stores/redis has a twin of each
// algorithm.
//
// A decision has three steps:
//
//	m.Decide(&r, state, now, cost)     what is left, and whether that is enough
//	m.Charge(&r, state, now, cost)     only if all limits of all keys allow it
//	m.Report(&r, state, now, cost)     how long until more is left
//
// Each algorithm has a file of its own, with a type that implements arithmetic. Times are
// microseconds since the Unix epoch and counts are whole numbers. Nothing is rounded except where
// an algorithm's formula says so.
package meter

import (
	"math"
	"sync/atomic"
	"time"
)

// Meter is a Limit prepared for counting: the arithmetic of one algorithm over a state of a few
// words. A Meter is a value and never changes; its methods may be called concurrently, each with a
// state of its own. If its Quota is 0, so is its Capacity.
//
// The algorithms that keep a cell have a state of two words, a Lockout has three. All zero is the
// state of a key never seen. The state of a BucketedWindow or a SlidingLog is nil for a key never
// seen, and grows (see Room).
type Meter struct {
	Limit
	arithmetic
	Buckets     int64 // full buckets in a window, 0 if the algorithm has none
	unlimited   bool  // every cost is allowed
	ownQuota    int64 // the limit's, as ownCapacity is: see With
	ownCapacity int64
	latest      *atomic.Pointer[civilWindow] // of a Calendar: see civil
}

// New returns the meter of a limit.
func New(l Limit) Meter {
	m := Meter{Limit: l, arithmetic: algorithms[l.Algorithm].arithmetic, ownQuota: l.Quota, ownCapacity: l.Capacity}
	if l.Quota == 0 {
		m.Capacity = 0
	}
	switch l.Algorithm {
	case BucketedWindow:
		m.Buckets = l.Window / l.Precision
	case Calendar:
		m.latest = new(atomic.Pointer[civilWindow])
	}
	return m
}

// Own and Unlimited are quotas for For: the limit's own, and none.
const (
	Own       int64 = -1
	Unlimited int64 = math.MaxInt64
)

// For returns the meter for a decision with a quota: m, or the result of With in room.
func (m *Meter) For(quota int64, room *Meter) *Meter {
	if quota == Own || quota == m.Quota {
		return m
	}
	*room = m.With(quota)
	return room
}

// With returns the meter of the same limit with another quota. Stored states do not depend on it,
// except that a token bucket's debt is paid off at the quota of the last charge. The burst of a
// token bucket changes in proportion to the limit's own, rounded down, and is at least 1: it does
// not matter which quota m has. The quota is 0 to MaxCount, or Unlimited: then every cost is
// allowed, and what is left is that of m.
func (m *Meter) With(quota int64) Meter {
	w := *m
	if quota == Unlimited {
		w.unlimited = true
		return w
	}
	w.Quota, w.Capacity = quota, quota
	if m.Algorithm == TokenBucket && m.ownCapacity != m.ownQuota && m.ownQuota != 0 && quota != 0 {
		burst, _ := MulDiv(m.ownCapacity, quota, m.ownQuota)
		w.Capacity = min(max(burst, 1), MaxCount)
	}
	return w
}

// WorstCase returns the most hits that some window of the limit's length can hold.
func (m *Meter) WorstCase() int64 { return m.arithmetic.worstCase(m) }

// Lifetime returns the longest time from a charge to the expiry of the state that the charge
// leaves.
func (m *Meter) Lifetime() int64 { return m.arithmetic.lifetime(m) }

// Grows reports whether the state has no fixed size.
func (m *Meter) Grows() bool { return algorithms[m.Algorithm].words == 0 }

// FixedWords returns the size of a state that does not grow. If it grows, it is the room for a
// reference to it.
func (m *Meter) FixedWords() int { return max(1, algorithms[m.Algorithm].words) }

// Room returns the state with room for a charge of cost: w, or a longer copy of it.
func (m *Meter) Room(w []uint64, cost int64) []uint64 {
	need := m.arithmetic.words(m, w, cost)
	if len(w) >= need {
		return w
	}
	longer := make([]uint64, need)
	copy(longer, w)
	return longer
}

// MostBytes returns how large the state can become with the limit's own quota, if it grows; 0 if it
// does not.
func (m *Meter) MostBytes() int64 {
	if !m.Grows() {
		return 0
	}
	return 8 * int64(m.arithmetic.words(m, nil, m.Quota))
}

// Result is a limit's decision on a cost. It has the fields of core.Result, so that a pointer to
// one converts to a pointer to the other.
type Result struct {
	Allowed    bool
	Remaining  int64
	ResetAfter time.Duration
	MoreAfter  time.Duration
	RetryAfter time.Duration
}

// Decide brings the state to the time now and decides on cost hits: it sets Allowed and Remaining.
// It returns the time of the decision: now, or the state's own time if that is later, so that the
// time of a key never moves back. The state of a token bucket has no time of its own.
//
// Processes whose clocks differ share a state, so that its time may be ahead of now. If it is less
// than one window ahead, it is used, and waits are counted from now. If it is one window ahead or
// more, far is true: only a step of the clock explains it. The time is then moved back to now, so
// that no step denies a key for longer than the limit itself can.
func (m *Meter) Decide(r *Result, w []uint64, now, cost int64) (at int64, far bool) {
	at, far = m.arithmetic.advance(m, w, now)
	r.Remaining = m.arithmetic.left(m, w, now)
	r.Allowed = cost <= r.Remaining || m.unlimited
	return at, far
}

// Charge adds cost hits at now, even if the limit denies them, and subtracts them in r, which
// Decide has filled in. The state must have room: see Room. Counts stop at MaxCount, a token bucket
// owes at most twice its burst, and a log keeps its newest hits, as many as the quota or as it has.
func (m *Meter) Charge(r *Result, w []uint64, now, cost int64) {
	if cost > 0 {
		m.arithmetic.charge(m, w, now, min(cost, MaxCount))
	}
	r.Allowed, r.Remaining = true, max(0, r.Remaining-cost)
}

// Report adds to r, which Decide or Charge has filled in, how long it takes without further hits
// until the whole capacity is left, until more is left than now, and, if cost is denied, until it
// is allowed. The first two are 0 if nothing is missing or the quota is 0.
func (m *Meter) Report(r *Result, w []uint64, now, cost int64) {
	r.ResetAfter, r.MoreAfter, r.RetryAfter = 0, 0, 0
	if left := r.Remaining; left < m.Capacity {
		r.ResetAfter = Duration(m.arithmetic.wait(m, w, now, m.Capacity))
		r.MoreAfter = r.ResetAfter
		if left+1 < m.Capacity {
			r.MoreAfter = Duration(m.arithmetic.wait(m, w, now, left+1))
		}
	}
	switch {
	case r.Allowed:
	case cost > m.Capacity:
		r.RetryAfter = Never
	case cost == r.Remaining+1:
		r.RetryAfter = r.MoreAfter
	default:
		r.RetryAfter = Duration(m.arithmetic.wait(m, w, now, cost))
	}
}

// Refund takes back cost hits that were charged at the time at, when reset was the result's
// ResetAfter in microseconds.
func (m *Meter) Refund(w []uint64, now, at, reset, cost int64) {
	m.arithmetic.advance(m, w, now)
	if cost > 0 {
		m.arithmetic.refund(m, w, now, at, reset, cost)
	}
}

// Grant gives back up to n of the hits that count at now, the newest first, so that those that come
// back soonest still do. The rest of n is lost: no state gets better than that of a key never seen.
// Lockouts, and token buckets with a quota of 0, do not change.
func (m *Meter) Grant(w []uint64, now, n int64) {
	m.arithmetic.advance(m, w, now)
	if n > 0 {
		m.arithmetic.grant(m, w, now, n)
	}
}

// Expiry returns a time from which the state means the same as none.
func (m *Meter) Expiry(w []uint64) int64 { return m.arithmetic.expiry(m, w) }

// Never is the RetryAfter of a cost that is always denied.
const Never time.Duration = math.MaxInt64

// Duration returns a number of microseconds as a duration.
func Duration(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// Clock returns a clock of microseconds since the Unix epoch. If clock is nil, it is the process's
// monotonic clock, which does not follow changes of the wall clock.
func Clock(clock func() time.Time) func() int64 {
	if clock != nil {
		return func() int64 { return clock().UnixMicro() }
	}
	start := time.Now()
	epoch := start.UnixMicro()
	return func() int64 { return epoch + int64(time.Since(start)/time.Microsecond) }
}
