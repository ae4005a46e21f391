package meter

// Grant gives back up to n of the hits that count at now, the newest first, so that
// those that come back soonest still do. The state must have been advanced to now.
// What no hit is left for is lost: no state gets better than that of a key never seen.
// Leases and lockouts are left alone. A token bucket with a quota of 0 is, too.
func (m *Meter) Grant(w []uint64, now, n int64) {
	if n <= 0 {
		return
	}
	switch m.algorithm {
	case SlidingWindow:
		loadCell(w).grantSliding(m, now, n).store(w)
	case FixedWindow, Calendar:
		c := loadCell(w)
		c.a -= uint32(min(n, int64(c.a)))
		c.store(w)
	case TokenBucket:
		loadCell(w).grantBucket(m, now, n).store(w)
	case BucketedWindow:
		m.grantBuckets(w, n)
	case SlidingLog:
		if hits := logLen(w); hits > 0 {
			setLog(w, logHead(w), hits-min(n, hits))
		}
	case Lockout, InFlight:
	}
}

// grantSliding takes hits of the current window, and then as many of the previous one
// as it takes for its share to fall by the rest. As in a denial, windows that began at
// a hit do not move on.
func (c cell) grantSliding(m *Meter, now, n int64) cell {
	t := c.turned(m, now)
	newest := min(n, int64(t.a))
	t.a -= uint32(newest)
	length := m.window - max(0, now-t.t)
	if share := mulDiv(int64(t.b), length, m.window); share > 0 && n > newest {
		t.b = uint32(fits(max(0, share-(n-newest)), length, m.window))
	}
	if now >= c.t+m.window && c != (cell{}) {
		c.a = t.b
		return c
	}
	return t
}

// grantBucket pays off what the hits have added to the debt.
func (c cell) grantBucket(m *Meter, now, n int64) cell {
	if m.quota == 0 || c == (cell{}) {
		return c
	}
	stored := m.With(int64(c.b))
	return stored.debtor(now, c.debt(now).sub(wideMul(m.window, n)))
}

func (m *Meter) grantBuckets(w []uint64, n int64) {
	if len(w) == 0 {
		return
	}
	n = min(n, bucketsTotal(w))
	for age := int64(0); n > 0; age++ {
		back := min(n, m.bucketCount(w, age))
		m.addToBucket(w, age, -back)
		n -= back
	}
}
