package core

// more returns how long it takes, without further hits, until remaining grows:
// left is what remaining has returned, and reset what the method of that name
// has. 0 if nothing is missing.
func (m *meter) more(w []uint64, now, left, reset int64) int64 {
	switch {
	case m.quota == 0 || left >= m.capacity:
		return 0
	case left+1 == m.capacity:
		return reset
	case left > 0 && m.algorithm == SlidingWindow:
		return loadCell(w).moreSliding(m, now)
	default:
		return m.wait(w, now, left+1)
	}
}

// moreSliding is the wait for one hit more than remains, if some remain: until
// one hit less of the window before counts, or, if none of them counts, until
// one hit less of this window does, one unit after its end.
func (c cell) moreSliding(m *meter, now int64) int64 {
	c = c.turned(m, now)
	left := c.t + m.window - now
	if c.b > 0 {
		// As in estimate, none of the window has passed if its start is ahead.
		if counts := mulDiv(int64(c.b), min(left, m.window), m.window); counts > 0 {
			return left - fits(counts-1, int64(c.b), m.window)
		}
	}
	return left + 1
}
