package core

// cell is the state of the algorithms that keep one time and two small numbers
// a key.
//
//	FixedWindow    t: start of the window   a: its hits
//	SlidingWindow  t: start of the window   a: its hits   b: the previous window's
//	TokenBucket    t + a/b: when the bucket is full again; b: the quota that pays the debt off
type cell struct {
	t    int64
	a, b uint32
}

func loadCell(w []uint64) cell {
	_ = w[1]
	return cell{int64(w[0]), uint32(w[1]), uint32(w[1] >> 32)}
}

func (c cell) store(w []uint64) {
	_ = w[1]
	w[0], w[1] = uint64(c.t), uint64(c.a)|uint64(c.b)<<32
}

func (c cell) rollFixed(m *meter, now int64) cell {
	switch {
	case c == cell{}, now >= c.t+m.window:
		return cell{}
	case c.t-now >= m.window: // only a step of the clock explains it
		c.t = m.anchor(now)
	}
	return c
}

func (c cell) rollSliding(m *meter, now int64) cell {
	switch {
	case c == cell{}, now >= c.t+2*m.window:
		return cell{} // the next hit anchors a new window
	case c.t-now >= m.window:
		c.t = m.anchor(now)
	}
	return c
}

// turned makes a window that has ended the previous one. This is not part of
// rolling, which is kept even where nothing is charged: windows that are
// anchored at hits must not be moved on by a request that was refused.
func (c cell) turned(m *meter, now int64) cell {
	if now >= c.t+m.window && c != (cell{}) {
		return cell{t: c.t + m.window, b: c.a}
	}
	return c
}

// estimate is the weighted count of a SlidingWindow,
// floor((cur·W + prev·(W−e)) / W) with e = now − start, 0 if the start is ahead
// of now: the formula of Kong's and of the Python library limits' sliding
// window counters.
func (c cell) estimate(m *meter, now int64) int64 {
	c = c.turned(m, now)
	if c.b == 0 {
		return int64(c.a)
	}
	return int64(c.a) + mulDiv(int64(c.b), m.window-max(0, now-c.t), m.window)
}

// count adds hits to the current window and opens one where there is none.
func (c cell) count(m *meter, now, cost int64) cell {
	if m.algorithm == SlidingWindow {
		c = c.turned(m, now)
	}
	if c == (cell{}) {
		c.t = m.anchor(now)
	}
	c.a += uint32(cost)
	return c
}

// uncount takes hits charged at the time at out of the window that they are in.
func (c cell) uncount(m *meter, at, cost int64) cell {
	switch {
	case at >= c.t && at < c.t+m.window:
		c.a -= uint32(min(cost, int64(c.a)))
	case m.algorithm == SlidingWindow && at < c.t && at >= c.t-m.window:
		c.b -= uint32(min(cost, int64(c.b)))
	}
	return c
}

func (c cell) waitFixed(m *meter, now, cost int64) int64 {
	if int64(c.a)+cost <= m.quota {
		return 0
	}
	return c.t + m.window - now
}

// waitSliding solves the estimate's formula for the first time at which cost
// fits. With room R = quota − cost, cost fits while
//
//	cur + floor(prev·(W−e)/W) ≤ R   ⇔   W−e ≤ floor(((R−cur+1)·W − 1) / prev)
//
// where cur alone is within R; otherwise the same holds in the next window,
// with cur in prev's place and nothing in its own.
func (c cell) waitSliding(m *meter, now, cost int64) int64 {
	if m.quota-c.estimate(m, now) >= cost {
		return 0
	}
	c = c.turned(m, now)
	room, e := m.quota-cost, now-c.t
	if cur := int64(c.a); cur > room {
		return m.window - e + m.window - fits(room, cur, m.window)
	}
	return m.window - fits(room-int64(c.a), int64(c.b), m.window) - e
}

// fits returns the largest part of window for which count, weighted by it, is
// not above room; count > room ≥ 0.
func fits(room, count, window int64) int64 {
	x := wideMul(room+1, window).sub(wide{0, 1})
	q, _ := x.div(count)
	return q
}
