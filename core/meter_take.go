package core

import "time"

// take decides on cost hits at now, charges them if the limit admits them and
// this is not a peek, and fills in r. The state must have room for them. It
// returns the time at which the decision was made.
func (m *meter) take(w []uint64, now, cost int64, peek bool, r *Result) (at int64) {
	var ok bool
	var left, reset, more int64
	switch { // the states of one cell are loaded and stored once
	case m.quota > 0 && m.algorithm == SlidingWindow:
		c := loadCell(w).rollSliding(m, now)
		at = max(now, c.t)
		if ok = cost <= m.quota-c.estimate(m, now) || cost <= 0; ok && !peek && cost > 0 {
			c = c.count(m, now, cost)
		}
		c.store(w)
		left, reset, more = c.outlookSliding(m, now)
	case m.quota > 0 && m.algorithm == FixedWindow:
		c := loadCell(w).rollFixed(m, now)
		at = max(now, c.t)
		if ok = cost <= m.quota-int64(c.a) || cost <= 0; ok && !peek && cost > 0 {
			c = c.count(m, now, cost)
		}
		c.store(w)
		left, reset, more = c.outlookFixed(m, now)
	case m.quota > 0 && m.algorithm == TokenBucket:
		c := loadCell(w).rollBucket(m, now)
		at = now
		if ok = cost <= m.capacity && c.admitsBucket(m, now, cost) || cost <= 0; ok && !peek && cost > 0 {
			c = c.chargeBucket(m, now, cost)
		}
		c.store(w)
		left, reset, more = c.outlookBucket(m, now)
	default:
		m.advance(w, now)
		at = m.at(w, now)
		if ok = m.admits(w, now, cost); ok && !peek {
			m.charge(w, now, cost)
		}
		left, reset, more = m.outlook(w, now)
	}
	m.fill(r, w, now, cost, ok, left, reset, more)
	return at
}

// report fills in what one limit says of cost hits.
func report(r *Result, m *meter, w []uint64, now, cost int64, allowed bool) {
	left, reset, more := m.outlook(w, now)
	m.fill(r, w, now, cost, allowed, left, reset, more)
}

// fill fills in r: left, reset and more are what outlook returns.
func (m *meter) fill(r *Result, w []uint64, now, cost int64, allowed bool, left, reset, more int64) {
	r.Allowed, r.Remaining = allowed, left
	r.ResetAfter, r.MoreAfter = time.Duration(reset)*time.Microsecond, time.Duration(more)*time.Microsecond
	switch {
	case allowed:
		r.RetryAfter = 0
	case cost == left+1 && more > 0: // more is the wait for just this cost
		r.RetryAfter = r.MoreAfter
	default:
		r.RetryAfter = micros(m.wait(w, now, cost))
	}
}
