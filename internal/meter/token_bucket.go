package meter

// The token bucket is the generic cell rate algorithm, GCRA: ITU-T I.371, annex
// A (https://www.itu.int/rec/T-REC-I.371), and ATM Forum, Traffic Management
// 4.1 (af-tm-0121.000). https://brandur.org/rate-limiting explains it for HTTP.
// It keeps the theoretical arrival time TAT, at which the bucket is full again.
// With E = window/quota for one hit, cost hits pass at the time t if
//
//	max(TAT, t) + E·cost − E·burst ≤ t
//
// and then move TAT on by E·cost. E is rarely a whole number of microseconds,
// so that everything is counted in units of 1/quota microseconds: the debt is
// D = (TAT − t)·quota, a hit adds window to it, and a microsecond pays off
// quota. Nothing is rounded.
//
// The state is a cell: TAT = t + a/b, and b is the quota at the last charge,
// which pays the debt off. D counts hits × window under any quota, so that
// programs whose quotas differ agree on how many hits are owed. The state has no
// time of its own: what a later clock has charged is a larger debt. A charge that
// nobody has admitted may leave a debt above the burst: overBurst, a bit of a, tells such
// a debt from one that only a step of the clock explains.

const overBurst = 1 << 31

// part returns a without the bit.
func (c cell) part() uint32 { return c.a &^ overBurst }

func (r *Reader) bucket() []uint64 {
	c := r.cell()
	if c != (cell{}) && (c.b == 0 || c.part() >= c.b || c.b > MaxCount) {
		r.Bad = true
	}
	return r.words(c)
}

func (c cell) advanceBucket(m *Meter, now int64) cell {
	if c == (cell{}) || c.t < now || c.t == now && c.part() == 0 || c.b == 0 {
		return cell{}
	}
	// A quota of 0 counts nothing, and forgets nothing.
	if m.quota == 0 || !c.farBucket(m, now) {
		return c
	}
	stored := m.With(int64(c.b))
	return stored.debtor(now, wideMul(m.window, stored.capacity))
}

// farBucket reports whether the charge that made the debt was a window or more
// ahead of now: the debt is the most that a charge leaves, which is the burst, or twice
// the burst if overBurst is set, and what a window pays off, or more. The burst is that of the
// quota that is stored, or the limit's own if that is larger: the quota may have been raised since.
func (c cell) farBucket(m *Meter, now int64) bool {
	if m.narrow && int64(c.b) == m.quota && c.t-now < m.ahead {
		return false
	}
	return c.exceeds(m, now)
}

// exceeds is farBucket in 128 bits.
func (c cell) exceeds(m *Meter, now int64) bool {
	stored := m.With(int64(c.b))
	most := wideMul(m.window, max(stored.capacity, m.own.capacity))
	if c.a&overBurst != 0 {
		most = most.add(most)
	}
	return !c.debt(now).less(most.add(wideMul(m.window, stored.quota)))
}

// debt returns D at now. The cell has been advanced to now.
func (c cell) debt(now int64) wide {
	if c == (cell{}) {
		return wide{}
	}
	return wideMul(c.t-now, int64(c.b)).add(wide{0, uint64(c.part())})
}

// debtor returns the cell that owes d at now, paid off at the meter's quota.
func (m *Meter) debtor(now int64, d wide) cell {
	if d.zero() {
		return cell{}
	}
	q, r := d.div(m.quota)
	c := cell{t: now + q, a: uint32(r), b: uint32(m.quota)}
	if wideMul(m.window, m.capacity).less(d) {
		c.a |= overBurst
	}
	return c
}

func (c cell) admitsBucket(m *Meter, now, cost int64) bool {
	if m.narrow && c == (cell{}) {
		return true // the caller has checked that cost ≤ capacity
	}
	if m.narrow && int64(c.b) == m.quota {
		return (c.t-now)*m.quota+int64(c.part()) <= m.window*(m.capacity-cost)
	}
	return !wideMul(m.window, m.capacity-cost).less(c.debt(now))
}

func (c cell) leftBucket(m *Meter, now int64) int64 {
	if c == (cell{}) {
		return m.capacity
	}
	return max(0, m.capacity-c.debt(now).divUp(m.window))
}

func (c cell) chargeBucket(m *Meter, now, cost int64) cell {
	if m.narrow && m.quota > 0 && (int64(c.b) == m.quota || c == cell{}) && cost <= m.capacity {
		d := m.window * cost
		if c != (cell{}) {
			d += (c.t-now)*m.quota + int64(c.part())
		}
		if d > m.window*m.capacity {
			return c.oweBucket(m, now, cost)
		}
		return cell{t: now + d/m.quota, a: uint32(d % m.quota), b: uint32(m.quota)}
	}
	return c.oweBucket(m, now, cost)
}

// oweBucket is chargeBucket in 128 bits, for a debt of any size.
func (c cell) oweBucket(m *Meter, now, cost int64) cell {
	if m.quota == 0 { // nothing pays a debt off
		return c
	}
	d, most := c.debt(now).add(wideMul(m.window, cost)), wideMul(2*m.window, m.capacity)
	if most.less(d) {
		d = most
	}
	return m.debtor(now, d)
}

func (c cell) waitBucket(m *Meter, now, cost int64) int64 {
	if c == (cell{}) {
		return 0
	}
	return c.debt(now).sub(wideMul(m.window, m.capacity-cost)).divUp(int64(c.b))
}

func (c cell) outlookBucket(m *Meter, now int64) (left, reset, more int64) {
	switch {
	case c == cell{}:
		return m.capacity, 0, 0
	case !m.narrow || int64(c.b) != m.quota:
		left = c.leftBucket(m, now)
		if left >= m.capacity {
			return left, 0, 0
		}
		return left, c.waitBucket(m, now, m.capacity), c.waitBucket(m, now, left+1)
	}
	debt, window, quota := uint64((c.t-now)*m.quota+int64(c.part())), uint64(m.window), uint64(m.quota)
	if debt == 0 {
		return m.capacity, 0, 0
	}
	owed := min(int64((debt-1)/window)+1, m.capacity) // hits
	if reset = c.t - now; c.part() > 0 {              // it is less than the quota
		reset++
	}
	if owed == 1 {
		return m.capacity - 1, reset, reset
	}
	return m.capacity - owed, reset, int64((debt-window*uint64(owed-1)-1)/quota) + 1
}

// refundBucket pays back what is still owed of a charge. A debt is paid off in
// the order in which it was made: if the bucket was to be full at at + reset
// after the charge, nothing of the charge is owed from then on.
func (c cell) refundBucket(m *Meter, now, at, reset, cost int64) cell {
	owed := at + reset - now
	if owed <= 0 || m.quota == 0 || c == (cell{}) {
		return c
	}
	back, most := wideMul(m.window, cost), wideMul(owed, int64(c.b))
	if most.less(back) {
		back = most
	}
	stored := m.With(int64(c.b))
	return stored.debtor(now, c.debt(now).sub(back))
}

func (c cell) expiryBucket() int64 { return c.t + 1 }
