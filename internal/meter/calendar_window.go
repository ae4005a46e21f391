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

type calendarWindow struct{ hitsInCell }

// end returns the end of a Calendar's window.
func (c cell) end() int64 { return c.t + int64(c.b)*microsecond }

func (a *calendarWindow) advance(m *Meter, w []uint64, now int64) {
	switch c := loadCell(w); {
	case c == cell{}:
	case now >= c.end():
		cell{}.store(w)
	case a.far(m, w, now): // only a step of the clock explains it
		c.t, c.b = m.calendar.window(now)
		c.store(w)
	}
}

// far reports whether the window, which begins after now, is later than the one after
// now's, or a whole window ahead.
func (*calendarWindow) far(m *Meter, w []uint64, now int64) bool {
	t := loadCell(w).t
	if t <= now {
		return false
	}
	start, length := m.calendar.window(now)
	end := start + int64(length)*microsecond
	return t > end || t-now >= end-start
}

func (*calendarWindow) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadCell(w)
	if c == (cell{}) {
		c.t, c.b = m.calendar.window(now)
	}
	c.a = addCount(c.a, cost)
	c.store(w)
}

func (*calendarWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	c := loadCell(w)
	if int64(c.a)+cost <= m.quota {
		return 0
	}
	return c.end() - now
}

func (*calendarWindow) outlook(m *Meter, w []uint64, now int64) (left, reset, more int64) {
	c := loadCell(w)
	if c.a == 0 {
		return m.quota, 0, 0
	}
	end := c.end() - now
	return max(0, m.quota-int64(c.a)), end, end
}

// refund takes hits of the time at out of the window, if it is in it.
func (*calendarWindow) refund(_ *Meter, w []uint64, _, at, _, cost int64) {
	if c := loadCell(w); at >= c.t && at < c.end() {
		c.a -= uint32(min(cost, int64(c.a)))
		c.store(w)
	}
}

func (*calendarWindow) expiry(_ *Meter, w []uint64) int64 { return loadCell(w).end() }

func (*calendarWindow) worstCase(m *Meter) int64 { return 2 * m.quota }

func (*calendarWindow) lifetime(m *Meter) int64 { return m.window + longestChange }

// read reads a cell. No window lasts longer than its nominal length and what a change of
// the clock adds to it.
func (a *calendarWindow) read(m *Meter, r *Reader) []uint64 {
	c := r.cell()
	if c.a > MaxCount || c != (cell{}) && (c.b == 0 || int64(c.b)*microsecond > a.lifetime(m)) {
		r.Bad = true
	}
	return r.words(c)
}
