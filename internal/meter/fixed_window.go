package meter

// A fixed window opens at the first hit, or at a multiple of its length since the Unix epoch if the
// limit is aligned, and counts until it ends:
//
//	allowed ⇔ hits + cost ≤ quota
//
// "Fixed window" of https://limits.readthedocs.io/en/stable/strategies.html is the same formula. A
// window is [start, start + length): a hit at its end opens the next one.
//
// A Calendar is a fixed window, too: the day, the week from Monday or the month of a time zone,
// from its first instant to the first instant of the next one (see civil.go).
//
// The state is a cell: t is the start, a the hits, and b, of a Calendar, the length of the window
// in seconds. So the state of a Calendar contains its end, which does not depend on the time zone
// database.

type fixedWindow struct{ fixedSize }

// opened returns the window that a first hit at now opens.
func (m *Meter) opened(now int64) cell {
	if m.Algorithm == Calendar {
		start, length := m.civil(now)
		return cell{t: start, b: length}
	}
	return cell{t: m.anchor(now)}
}

// end returns the end of a window.
func (c cell) end(m *Meter) int64 {
	if m.Algorithm == Calendar {
		return c.t + int64(c.b)*microsecond
	}
	return c.t + m.Window
}

func (*fixedWindow) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	c := loadCell(w)
	switch {
	case c == cell{}:
	case now >= c.end(m):
		cell{}.store(w)
	case c.far(m, now): // only a step of the clock explains it
		open := m.opened(now)
		open.a = c.a
		open.store(w)
		return now, true
	default:
		return max(now, c.t), false
	}
	return now, false
}

// far reports whether the window begins a whole window after now. The windows of a Calendar are not
// equally long: it is also far if it begins later than the one after now's.
func (c cell) far(m *Meter, now int64) bool {
	if m.Algorithm != Calendar || c.t <= now {
		return c.t-now >= m.Window
	}
	open := m.opened(now)
	return c.t > open.end(m) || c.t-now >= open.end(m)-open.t
}

func (*fixedWindow) left(m *Meter, w []uint64, _ int64) int64 {
	return max(0, m.Quota-int64(loadCell(w).a))
}

func (*fixedWindow) wait(m *Meter, w []uint64, now, _ int64) int64 { return loadCell(w).end(m) - now }

func (*fixedWindow) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadCell(w)
	if c == (cell{}) {
		c = m.opened(now)
	}
	c.a = addCount(c.a, cost)
	c.store(w)
}

// refund takes hits of the time at out of the window, if it is in it.
func (*fixedWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	if c := loadCell(w); at >= c.t && at < c.end(m) {
		c.a -= uint32(min(cost, int64(c.a)))
		c.store(w)
	}
}

func (*fixedWindow) grant(_ *Meter, w []uint64, _, n int64) {
	c := loadCell(w)
	c.a -= uint32(min(n, int64(c.a)))
	c.store(w)
}

func (*fixedWindow) expiry(m *Meter, w []uint64) int64 { return loadCell(w).end(m) }

func (*fixedWindow) worstCase(m *Meter) int64 { return 2 * m.Quota }

func (*fixedWindow) lifetime(m *Meter) int64 {
	if m.Algorithm == Calendar {
		return m.Window + longestChange
	}
	return m.Window
}

// read checks the length of a Calendar's window: none is longer than the nominal length and
// longestChange.
func (a *fixedWindow) read(m *Meter, r *Reader) []uint64 {
	w := a.fixedSize.read(m, r)
	if c := loadCell(w); m.Algorithm == Calendar && c != (cell{}) {
		r.Bad = r.Bad || c.b == 0 || int64(c.b)*microsecond > a.lifetime(m)
	}
	return w
}
