package meter

// A fixed window opens at the first hit, or at a multiple of its length since
// the Unix epoch if the limit is aligned, and counts until it ends:
//
//	allowed ⇔ hits + cost ≤ quota
//
// "Fixed window" of https://limits.readthedocs.io/en/stable/strategies.html is
// the same formula. A window is [start, start + length): a hit at its end opens
// the next one.
//
// The state is a cell: t is the start, a the hits.

func (c cell) advanceFixed(m *Meter, now int64) cell {
	switch {
	case c == cell{}, now >= c.t+m.window:
		return cell{}
	case c.t-now >= m.window: // only a step of the clock explains it
		c.t = m.anchor(now)
	}
	return c
}

// chargeFixed adds hits to the window, and opens one if there is none.
func (c cell) chargeFixed(m *Meter, now, cost int64) cell {
	if c == (cell{}) {
		c.t = m.anchor(now)
	}
	c.a = addCount(c.a, cost)
	return c
}

func (c cell) waitFixed(m *Meter, now, cost int64) int64 {
	if int64(c.a)+cost <= m.quota {
		return 0
	}
	return c.t + m.window - now
}

func (c cell) outlookFixed(m *Meter, now int64) (left, reset, more int64) {
	if c.a == 0 {
		return m.quota, 0, 0
	}
	end := c.t + m.window - now
	return max(0, m.quota-int64(c.a)), end, end
}

// refundFixed takes hits of the time at out of the window, if it is in it.
func (c cell) refundFixed(m *Meter, at, cost int64) cell {
	if at >= c.t && at < c.t+m.window {
		c.a -= uint32(min(cost, int64(c.a)))
	}
	return c
}

func (c cell) expiryFixed(m *Meter) int64 { return c.t + m.window }
