package meter

import "math/bits"

// A sliding window is approximated by two fixed ones: the hits of the current window, and of the
// previous one the share that a window ending now still covers. With W the length of a window and e
// = now − start:
//
//	allowed ⇔ floor((current·W + previous·(W − e)) / W) + cost ≤ quota
//
// It is the "sliding window counter" of https://limits.readthedocs.io/en/stable/strategies.html.
// The windows begin at the first hit, or at multiples of W since the Unix epoch if the limit is
// aligned. After 2·W without a hit, the next hit opens a new window.
//
// The state is a cell: t is the start of the current window, a its hits, b the hits of the previous
// window.

type slidingWindow struct{ fixedSize }

func (*slidingWindow) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	c := loadCell(w)
	switch {
	case c == cell{}:
	case now >= c.t+2*m.Window: // the next hit opens a new window
		cell{}.store(w)
	case c.t-now >= m.Window: // only a step of the clock explains it
		c.t = m.anchor(now)
		c.store(w)
		return now, true
	default:
		return max(now, c.t), false
	}
	return now, false
}

// turned returns the cell at now: a window that has ended becomes the previous one. advance does
// not do this, because a denied request must not move windows that began at a hit.
func (c cell) turned(m *Meter, now int64) cell {
	if now >= c.t+m.Window && c != (cell{}) {
		return cell{t: c.t + m.Window, b: c.a}
	}
	return c
}

// left is the quota less the left side of the formula without the cost. If the start is ahead of
// now, e is 0.
func (*slidingWindow) left(m *Meter, w []uint64, now int64) int64 {
	c := loadCell(w).turned(m, now)
	used := int64(c.a)
	if c.b > 0 {
		share, _ := MulDiv(int64(c.b), m.Window-max(0, now-c.t), m.Window)
		used += share
	}
	return max(0, m.Quota-used)
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

// wait solves the formula for the first time at which cost fits. With room = quota − cost, it fits
// while
//
//	current + floor(previous·(W−e)/W) ≤ room   ⇔   W−e ≤ floor(((room−current+1)·W − 1) / previous)
//
// if current alone is within room. Otherwise the same holds in the next window, in which current
// has become previous and there is no other hit.
func (*slidingWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	c := loadCell(w).turned(m, now)
	room, current, end := m.Quota-cost, int64(c.a), c.t+m.Window-now
	if current > room {
		return end + m.Window - fits(room, current, m.Window)
	}
	return end - fits(room-current, int64(c.b), m.Window)
}

// fits returns the largest part of a window for which count, weighted by it, is at most room; count
// > room ≥ 0.
func fits(room, count, window int64) int64 {
	hi, lo := bits.Mul64(uint64(room+1), uint64(window))
	lo, borrow := bits.Sub64(lo, 1, 0)
	q, _ := bits.Div64(hi-borrow, lo, uint64(count))
	return int64(q)
}

// refund takes hits of the time at out of the window that it is in.
func (*slidingWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	c := loadCell(w)
	switch {
	case at >= c.t && at < c.t+m.Window:
		c.a -= uint32(min(cost, int64(c.a)))
	case at < c.t && at >= c.t-m.Window:
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
	length := m.Window - max(0, now-t.t)
	if share, _ := MulDiv(int64(t.b), length, m.Window); share > 0 && n > newest {
		t.b = uint32(fits(max(0, share-(n-newest)), length, m.Window))
	}
	if now >= c.t+m.Window && c != (cell{}) {
		c.a = t.b
		t = c
	}
	t.store(w)
}

func (*slidingWindow) expiry(m *Meter, w []uint64) int64 { return loadCell(w).t + 2*m.Window }

func (*slidingWindow) worstCase(m *Meter) int64 { return 2 * m.Quota }

func (*slidingWindow) lifetime(m *Meter) int64 { return 2 * m.Window }
