package core

// outlook returns what a limit has left for a key: left is the largest cost
// that admits would allow now, reset how long it takes, without further hits,
// until the whole capacity is left, and more how long it takes until left
// grows. reset and more are 0 if nothing is missing or the quota is 0.
//
// It gives what remaining, wait(capacity) and wait(left+1) give. Each decision
// asks for all three, so they are computed together.
func (m *meter) outlook(w []uint64, now int64) (left, reset, more int64) {
	if m.quota == 0 {
		return 0, 0, 0
	}
	switch m.algorithm {
	case SlidingWindow:
		return loadCell(w).outlookSliding(m, now)
	case FixedWindow:
		return loadCell(w).outlookFixed(m, now)
	case TokenBucket:
		return loadCell(w).outlookBucket(m, now)
	case BucketedWindow:
		return m.outlookBuckets(w, now)
	case SlidingLog:
		return m.outlookLog(w, now)
	}
	left = m.remaining(w, now)
	if left >= m.capacity {
		return left, 0, 0
	}
	reset = m.wait(w, now, m.capacity)
	if left+1 == m.capacity {
		return left, reset, reset
	}
	return left, reset, m.wait(w, now, left+1)
}

func (c cell) outlookFixed(m *meter, now int64) (left, reset, more int64) {
	if c.a == 0 {
		return m.quota, 0, 0
	}
	end := c.t + m.window - now
	return max(0, m.quota-int64(c.a)), end, end
}

// outlookSliding solves the estimate's formula as waitSliding does. If hits are
// left, one more is left when one hit less of the previous window counts, or,
// if none of them counts, when one hit less of this window does: one unit after
// its end.
func (c cell) outlookSliding(m *meter, now int64) (left, reset, more int64) {
	c = c.turned(m, now)
	end, used, previous := c.t+m.window-now, int64(c.a), int64(0)
	if c.b > 0 {
		// As in estimate, none of the window has passed if its start is ahead.
		previous = mulDiv(int64(c.b), min(end, m.window), m.window)
		used += previous
	}
	if used == 0 {
		return m.quota, 0, 0
	}
	if c.a > 0 { // until the last hit of this window counts no more
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

// outlookBucket is what the debt leaves: a hit costs window units of it, and a
// microsecond pays quota units off.
func (c cell) outlookBucket(m *meter, now int64) (left, reset, more int64) {
	switch {
	case c == cell{}:
		return m.capacity, 0, 0
	case !m.narrow || int64(c.b) != m.quota:
		left = c.remainingBucket(m, now)
		if left >= m.capacity {
			return left, 0, 0
		}
		return left, c.waitBucket(m, now, m.capacity), c.waitBucket(m, now, left+1)
	}
	debt, window, quota := uint64((c.t-now)*m.quota+int64(c.a)), uint64(m.window), uint64(m.quota)
	if debt == 0 {
		return m.capacity, 0, 0
	}
	owed := min(int64((debt-1)/window)+1, m.capacity) // hits
	if reset = c.t - now; c.a > 0 {                   // a is less than the quota
		reset++
	}
	if owed == 1 {
		return m.capacity - 1, reset, reset
	}
	return m.capacity - owed, reset, int64((debt-window*uint64(owed-1)-1)/quota) + 1
}

func (m *meter) outlookBuckets(w []uint64, now int64) (left, reset, more int64) {
	total := bucketsTotal(w)
	if total == 0 {
		return m.quota, 0, 0
	}
	newest := int64(0)
	for newest < m.buckets && m.bucketCount(w, newest) == 0 {
		newest++
	}
	left, reset = max(0, m.quota-total), m.bucketEnd(w, newest)-now
	if left+1 == m.quota {
		return left, reset, reset
	}
	return left, reset, m.waitBuckets(w, now, left+1)
}

func (m *meter) outlookLog(w []uint64, now int64) (left, reset, more int64) {
	n := logLen(w)
	if n == 0 {
		return m.quota, 0, 0
	}
	left, reset = max(0, m.quota-n), int64(*logHit(w, n-1))+m.window-now
	if left+1 == m.quota {
		return left, reset, reset
	}
	return left, reset, int64(*logHit(w, n+left-m.quota)) + m.window - now
}
