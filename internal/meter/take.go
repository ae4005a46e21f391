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
// It does what Advance, Admits, Charge and Report do.
func (m *Meter) Take(w []uint64, now, cost int64, peek bool, r *Result) (at int64) {
	if m.Cells() {
		var c Cell
		c, at, r.Allowed, _ = m.Decide(w, now, cost, !peek)
		r.Remaining, r.ResetAfter, r.MoreAfter, r.RetryAfter = m.Tell(c, now, cost, r.Allowed)
		return at
	}
	m.Advance(w, now)
	at = m.At(w, now)
	ok := m.Admits(w, now, cost)
	if !peek && ok {
		m.Charge(w, now, cost)
	}
	m.Report(r, w, now, cost, ok)
	return at
}

// Cells reports whether Decide and Tell may be called: the state is a cell, and
// the quota is not 0.
func (m *Meter) Cells() bool {
	return m.quota > 0 && (m.algorithm == SlidingWindow || m.algorithm == FixedWindow || m.algorithm == TokenBucket || m.algorithm == Calendar)
}

// Decide is the first half of Take, for a state that is a cell; Tell is the
// second half, for which the state need not be locked any more. The cell is
// loaded and stored once. Decide returns the cell after the decision, the time
// at which the decision was made, whether the cost is allowed, and whether no
// hit is left.
func (m *Meter) Decide(w []uint64, now, cost int64, charge bool) (c Cell, at int64, ok, spent bool) {
	c, charge = loadCell(w), charge && cost > 0
	switch m.algorithm {
	case SlidingWindow:
		c, ok, spent = c.decideSliding(m, now, cost, charge)
		at = max(now, c.t)
	case FixedWindow:
		c = c.advanceFixed(m, now)
		at = max(now, c.t)
		if ok = cost <= m.quota-int64(c.a) || cost <= 0; ok && charge {
			c = c.chargeFixed(m, now, cost)
		}
		spent = int64(c.a) >= m.quota
	case Calendar:
		c = c.advanceCalendar(m, now)
		at = max(now, c.t)
		if ok = cost <= m.quota-int64(c.a) || cost <= 0; ok && charge {
			c = c.chargeCalendar(m, now, cost)
		}
		spent = int64(c.a) >= m.quota
	default:
		c, at = c.advanceBucket(m, now), now
		if ok = cost <= m.capacity && c.admitsBucket(m, now, cost) || cost <= 0; ok && charge {
			c = c.chargeBucket(m, now, cost)
		}
		spent = !c.admitsBucket(m, now, 1)
	}
	c.store(w)
	return c, at, ok, spent
}

// Tell returns what Report fills in for a decision of Decide on the same cost at
// the same now.
func (m *Meter) Tell(c Cell, now, cost int64, allowed bool) (left int64, reset, more, retry time.Duration) {
	var resetAfter, moreAfter int64
	switch m.algorithm {
	case SlidingWindow:
		left, resetAfter, moreAfter = c.outlookSliding(m, now)
	case FixedWindow:
		left, resetAfter, moreAfter = c.outlookFixed(m, now)
	case Calendar:
		left, resetAfter, moreAfter = c.outlookCalendar(m, now)
	default:
		left, resetAfter, moreAfter = c.outlookBucket(m, now)
	}
	if !allowed {
		var w [cellWords]uint64
		c.store(w[:])
		retry = m.retryAfter(w[:], now, cost, left, moreAfter)
	}
	return left, time.Duration(resetAfter) * time.Microsecond, time.Duration(moreAfter) * time.Microsecond, retry
}

// Left returns how many hits are left, as Tell does, and nothing else.
func (m *Meter) Left(c Cell, now int64) int64 {
	if m.algorithm == SlidingWindow {
		return max(0, m.quota-c.usedSliding(m, now))
	}
	left, _, _, _ := m.Tell(c, now, 0, true)
	return left
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
