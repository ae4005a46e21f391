package meter

// A sliding window is approximated by two fixed ones: the hits of the current
// window, and of the previous one the share that a window ending now still
// covers. With W the length of a window and e = now − start:
//
//	allowed ⇔ floor((current·W + previous·(W − e)) / W) + cost ≤ quota
//
// It is the "sliding window counter" of
// https://limits.readthedocs.io/en/stable/strategies.html. The windows begin at
// the first hit, or at multiples of W since the Unix epoch if the limit is
// aligned. After 2·W without a hit, the next hit opens a new window.
//
// The state is a cell: t is the start of the current window, a its hits, b the
// hits of the previous window.

type slidingWindow struct{ inCell }

func (*slidingWindow) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	c := loadCell(w)
	switch {
	case c == cell{}:
	case now >= c.t+2*m.window: // the next hit opens a new window
		cell{}.store(w)
	case c.t-now >= m.window: // only a step of the clock explains it
		c.t = m.anchor(now)
		c.store(w)
		return now, true
	default:
		return max(now, c.t), false
	}
	return now, false
}

// turned makes a window that has ended the previous one. advance does not do
// it, because its result is kept even if nothing is charged: a denied request
// must not move on windows that began at a hit.
func (c cell) turned(m *Meter, now int64) cell {
	if now >= c.t+m.window && c != (cell{}) {
		return cell{t: c.t + m.window, b: c.a}
	}
	return c
}

// used is the left side of the formula, without the cost, of a cell that has turned. If
// the start is ahead of now, e is 0.
func (c cell) used(m *Meter, now int64) int64 {
	if c.b == 0 {
		return int64(c.a)
	}
	return int64(c.a) + mulDiv(int64(c.b), m.window-max(0, now-c.t), m.window)
}

func (*slidingWindow) allows(m *Meter, w []uint64, now, cost int64) bool {
	return cost <= m.quota-loadCell(w).turned(m, now).used(m, now)
}

// charge adds hits to the current window, and opens one if there is none.
func (*slidingWindow) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadCell(w).turned(m, now)
	if c == (cell{}) {
		c.t = m.anchor(now)
	}
	c.a = addCount(c.a, cost)
	c.store(w)
}

func (*slidingWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	return loadCell(w).turned(m, now).waitSliding(m, now, cost)
}

// waitSliding solves the formula for the first time at which cost fits. With
// room = quota − cost, it fits while
//
//	current + floor(previous·(W−e)/W) ≤ room   ⇔   W−e ≤ floor(((room−current+1)·W − 1) / previous)
//
// if current alone is within room. Otherwise the same holds in the next window,
// in which current has become previous and there is no other hit.
func (c cell) waitSliding(m *Meter, now, cost int64) int64 {
	if m.quota-c.used(m, now) >= cost {
		return 0
	}
	room, e := m.quota-cost, now-c.t
	if current := int64(c.a); current > room {
		return m.window - e + m.window - fits(room, current, m.window)
	}
	return m.window - fits(room-int64(c.a), int64(c.b), m.window) - e
}

// fits returns the largest part of a window for which count, weighted by it, is
// at most room; count > room ≥ 0.
func fits(room, count, window int64) int64 {
	x := wideMul(room+1, window).sub(wide{0, 1})
	q, _ := x.div(count)
	return q
}

// outlook solves the formula as waitSliding does. If hits are left, one
// more is left when one hit less of the previous window counts, or, if none of
// them counts, when one hit less of the current window does: one microsecond
// after its end.
func (*slidingWindow) outlook(m *Meter, w []uint64, now int64) (left, reset, more int64) {
	c := loadCell(w).turned(m, now)
	end, used, previous := c.t+m.window-now, int64(c.a), int64(0)
	if c.b > 0 {
		// As in used, e is 0 if the start is ahead of now.
		previous = mulDiv(int64(c.b), min(end, m.window), m.window)
		used += previous
	}
	if used == 0 {
		return m.quota, 0, 0
	}
	if c.a > 0 { // until the last hit of the current window counts no more
		reset = end + m.window - int64(uint64(m.window-1)/uint64(c.a))
	} else {
		reset = end - int64(uint64(m.window-1)/uint64(c.b))
	}
	left = max(0, m.quota-used)
	switch {
	case left+1 == m.quota:
		more = reset
	case left == 0:
		more = c.waitSliding(m, now, 1)
	case previous == 0:
		more = end + 1
	default:
		more = end - fits(previous-1, int64(c.b), m.window)
	}
	return left, reset, more
}

// refund takes hits of the time at out of the window that it is in.
func (*slidingWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	c := loadCell(w)
	switch {
	case at >= c.t && at < c.t+m.window:
		c.a -= uint32(min(cost, int64(c.a)))
	case at < c.t && at >= c.t-m.window:
		c.b -= uint32(min(cost, int64(c.b)))
	}
	c.store(w)
}

// grant takes hits of the current window, and then of the previous one until its weighted count has
// fallen by the rest. As in a denial, windows that began at a hit do not move on.
func (*slidingWindow) grant(m *Meter, w []uint64, now, n int64) {
	c := loadCell(w)
	t := c.turned(m, now)
	newest := min(n, int64(t.a))
	t.a -= uint32(newest)
	length := m.window - max(0, now-t.t)
	if share := mulDiv(int64(t.b), length, m.window); share > 0 && n > newest {
		t.b = uint32(fits(max(0, share-(n-newest)), length, m.window))
	}
	if now >= c.t+m.window && c != (cell{}) {
		c.a = t.b
		t = c
	}
	t.store(w)
}

func (*slidingWindow) expiry(m *Meter, w []uint64) int64 { return loadCell(w).t + 2*m.window }

func (*slidingWindow) worstCase(m *Meter) int64 { return 2 * m.quota }

func (*slidingWindow) lifetime(m *Meter) int64 { return 2 * m.window }
