package meter

import "time"

// Result is a limit's decision on a cost. It has the fields of core.Result, so
// that a pointer to one converts to a pointer to the other.
type Result struct {
	Allowed    bool
	Remaining  int64
	ResetAfter time.Duration
	MoreAfter  time.Duration
	RetryAfter time.Duration
}

// Take decides on cost hits at now, charges them if the limit admits them and
// this is not a peek, and fills in r. The state must have room for them. It
// returns the time at which the decision was made.
//
// It does what Advance, Admits, Charge and Report do. A cell is loaded and
// stored once.
func (m *Meter) Take(w []uint64, now, cost int64, peek bool, r *Result) (at int64) {
	switch {
	case m.quota > 0 && m.algorithm == SlidingWindow:
		return m.takeSliding(w, now, cost, peek, r)
	case m.quota > 0 && m.algorithm == FixedWindow:
		return m.takeFixed(w, now, cost, peek, r)
	case m.quota > 0 && m.algorithm == TokenBucket:
		return m.takeBucket(w, now, cost, peek, r)
	}
	m.Advance(w, now)
	at = m.At(w, now)
	ok := m.Admits(w, now, cost)
	if ok && !peek {
		m.Charge(w, now, cost)
	}
	m.Report(r, w, now, cost, ok)
	return at
}

// Report fills in the limit's result for cost hits.
func (m *Meter) Report(r *Result, w []uint64, now, cost int64, allowed bool) {
	left, reset, more := m.Outlook(w, now)
	m.fill(r, w, now, cost, allowed, left, reset, more)
}

// fill fills in r. left, reset and more are what Outlook returns.
func (m *Meter) fill(r *Result, w []uint64, now, cost int64, allowed bool, left, reset, more int64) {
	r.Allowed, r.Remaining = allowed, left
	r.ResetAfter, r.MoreAfter = time.Duration(reset)*time.Microsecond, time.Duration(more)*time.Microsecond
	switch {
	case allowed:
		r.RetryAfter = 0
	case cost == left+1 && more > 0: // more is the wait for this cost
		r.RetryAfter = r.MoreAfter
	default:
		r.RetryAfter = Duration(m.Wait(w, now, cost))
	}
}
