package meter

import (
	"math"
	"time"
)

// Forever is what Wait returns if no waiting helps.
const Forever int64 = math.MaxInt64

// Duration returns a number of microseconds as a duration, the longest for Forever.
func Duration(n int64) time.Duration {
	if n == Forever {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Microsecond
}

// Allows reports whether the limit allows cost hits at now.
func (m *Meter) Allows(w []uint64, now, cost int64) bool {
	switch {
	case cost <= 0:
		return true
	case cost > m.capacity || m.quota == 0:
		return false
	default:
		return m.arithmetic.allows(m, w, now, cost)
	}
}

// Remaining returns the largest cost that Allows would allow at now.
func (m *Meter) Remaining(w []uint64, now int64) int64 {
	left, _, _ := m.Outlook(w, now)
	return left
}

// Wait returns how long it takes, without further hits, until cost is allowed:
// 0 if it is allowed now, Forever if it never is.
func (m *Meter) Wait(w []uint64, now, cost int64) int64 {
	switch {
	case cost <= 0:
		return 0
	case cost > m.capacity || m.quota == 0:
		return Forever
	default:
		return m.arithmetic.wait(m, w, now, cost)
	}
}

// Outlook returns what a limit has left for a key: left is the largest cost
// that Allows would allow at now, reset how long it takes, without further hits,
// until the whole capacity is left, and more how long it takes until left grows.
// reset and more are 0 if nothing is missing or the quota is 0.
//
// It returns what Remaining, Wait(Capacity) and Wait(left+1) return. Each
// decision asks for all three, so that they are computed together.
func (m *Meter) Outlook(w []uint64, now int64) (left, reset, more int64) {
	if m.quota == 0 {
		return 0, 0, 0
	}
	return m.arithmetic.outlook(m, w, now)
}

// Result is a limit's decision on a cost. It has the fields of core.Result, so
// that a pointer to one converts to a pointer to the other.
type Result struct {
	Allowed    bool
	Remaining  int64
	ResetAfter time.Duration
	MoreAfter  time.Duration
	RetryAfter time.Duration
}

// Take decides on cost hits at now, charges them if the limit allows them and
// this is not a peek, and fills in r. The state must have room for them. It
// returns the time at which the decision was made.
func (m *Meter) Take(w []uint64, now, cost int64, peek bool, r *Result) (at int64) {
	at, _ = m.Advance(w, now)
	allowed := m.Allows(w, now, cost)
	if !peek && allowed {
		m.Charge(w, now, cost)
	}
	m.Report(r, w, now, cost, allowed)
	return at
}

// Report fills in the limit's result for cost hits.
func (m *Meter) Report(r *Result, w []uint64, now, cost int64, allowed bool) {
	left, reset, more := m.Outlook(w, now)
	r.Allowed, r.Remaining = allowed, left
	r.ResetAfter, r.MoreAfter = time.Duration(reset)*time.Microsecond, time.Duration(more)*time.Microsecond
	if r.RetryAfter = 0; !allowed {
		r.RetryAfter = m.retryAfter(w, now, cost, left, more)
	}
}

// retryAfter returns the wait of a cost that was denied. left and more are what
// Outlook returns.
func (m *Meter) retryAfter(w []uint64, now, cost, left, more int64) time.Duration {
	if cost == left+1 && more > 0 { // more is the wait for this cost
		return time.Duration(more) * time.Microsecond
	}
	return Duration(m.Wait(w, now, cost))
}
