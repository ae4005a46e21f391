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

type fixedWindow struct{ hitsInCell }

func (*fixedWindow) advance(m *Meter, w []uint64, now int64) {
	switch c := loadCell(w); {
	case c == cell{}:
	case now >= c.t+m.window:
		cell{}.store(w)
	case c.t-now >= m.window: // only a step of the clock explains it
		c.t = m.anchor(now)
		c.store(w)
	}
}

func (*fixedWindow) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadCell(w)
	if c == (cell{}) {
		c.t = m.anchor(now)
	}
	c.a = addCount(c.a, cost)
	c.store(w)
}

func (*fixedWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	c := loadCell(w)
	if int64(c.a)+cost <= m.quota {
		return 0
	}
	return c.t + m.window - now
}

func (*fixedWindow) outlook(m *Meter, w []uint64, now int64) (left, reset, more int64) {
	c := loadCell(w)
	if c.a == 0 {
		return m.quota, 0, 0
	}
	end := c.t + m.window - now
	return max(0, m.quota-int64(c.a)), end, end
}

// refund takes hits of the time at out of the window, if it is in it.
func (*fixedWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	if c := loadCell(w); at >= c.t && at < c.t+m.window {
		c.a -= uint32(min(cost, int64(c.a)))
		c.store(w)
	}
}

func (*fixedWindow) expiry(m *Meter, w []uint64) int64 { return loadCell(w).t + m.window }

func (*fixedWindow) worstCase(m *Meter) int64 { return 2 * m.quota }

func (*fixedWindow) lifetime(m *Meter) int64 { return m.window }
