package meter

// A calendar window is the day, the week from Monday or the month of a time
// zone, from its first instant to the first instant of the next one (see
// civil.go). It counts as a fixed window does:
//
//	allowed ⇔ hits + cost ≤ quota
//
// The state is a cell: t is the start of its window, a the hits, b the length of
// the window in seconds. So a state says by itself when it ends, also to a
// program whose time zone database differs. Only a first hit asks the calendar.

// endCalendar returns the end of the cell's window.
func (c cell) endCalendar() int64 { return c.t + int64(c.b)*microsecond }

func (c cell) advanceCalendar(m *Meter, now int64) cell {
	switch {
	case c == cell{}, now >= c.endCalendar():
		return cell{}
	case c.t > now && c.farCalendar(m, now): // only a step of the clock explains it
		c.t, c.b = m.calendar.window(now)
	}
	return c
}

// farCalendar reports whether the cell's window, which begins after now, is
// later than the one after now's, or a whole window ahead.
func (c cell) farCalendar(m *Meter, now int64) bool {
	start, length := m.calendar.window(now)
	end := start + int64(length)*microsecond
	return c.t > end || c.t-now >= end-start
}

// chargeCalendar adds hits to the window, and opens one if there is none.
func (c cell) chargeCalendar(m *Meter, now, cost int64) cell {
	if c == (cell{}) {
		c.t, c.b = m.calendar.window(now)
	}
	c.a = addCount(c.a, cost)
	return c
}

func (c cell) waitCalendar(m *Meter, now, cost int64) int64 {
	if int64(c.a)+cost <= m.quota {
		return 0
	}
	return c.endCalendar() - now
}

func (c cell) outlookCalendar(m *Meter, now int64) (left, reset, more int64) {
	if c.a == 0 {
		return m.quota, 0, 0
	}
	end := c.endCalendar() - now
	return max(0, m.quota-int64(c.a)), end, end
}

// refundCalendar takes hits of the time at out of the window, if it is in it.
func (c cell) refundCalendar(at, cost int64) cell {
	if at >= c.t && at < c.endCalendar() {
		c.a -= uint32(min(cost, int64(c.a)))
	}
	return c
}

// calendar reads the cell of a Calendar. No window lasts longer than its nominal
// length and what a change of the clock adds to it.
func (r *Reader) calendar(m *Meter) []uint64 {
	c := r.cell()
	if c.a > MaxCount || c != (cell{}) && (c.b == 0 || int64(c.b)*microsecond > m.Lifetime()) {
		r.Bad = true
	}
	return r.words(c)
}
