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
// The state is a cell: TAT = t + a/b, and b is the quota at the last charge, which pays the debt
// off. D counts hits × window under any quota, so that programs whose quotas differ agree on how
// many hits are owed. The state has no time of its own: a charge by a later clock is a larger debt.
// A charge above the quota may leave a debt above the burst: overBurst, a bit of a, tells it from a
// debt that only a step of the clock explains.

const overBurst = 1 << 31

type tokenBucket struct{ inCell }

// part returns a without the bit.
func (c cell) part() uint32 { return c.a &^ overBurst }

func (*tokenBucket) read(_ *Meter, r *Reader) []uint64 {
	c := r.cell()
	if c != (cell{}) && (c.b == 0 || c.part() >= c.b || c.b > MaxCount) {
		r.Bad = true
	}
	return r.words(c)
}

// advance returns now: the state of a token bucket has no time of its own.
func (*tokenBucket) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	switch c := loadCell(w); {
	case c == cell{}:
	case c.t < now || c.t == now && c.part() == 0 || c.b == 0:
		cell{}.store(w)
	case c.unexplained(m, now):
		stored := m.With(int64(c.b))
		stored.debtor(now, wideMul(m.window, stored.capacity)).store(w)
		return now, true
	}
	return now, false
}

// unexplained reports whether the charge that made the debt was a window or more
// ahead of now: the debt is at least the most that a charge leaves and what a window pays
// off, (burst + quota) × window, or (2 × burst + quota) × window if overBurst is set. The burst is
// that of the quota that is stored, or the limit's own if that is larger: the quota may have been
// raised since.
//
// A quota of 0 counts nothing and forgets nothing.
func (c cell) unexplained(m *Meter, now int64) bool {
	if c.t <= now || m.quota == 0 || m.narrow && int64(c.b) == m.quota && c.t-now < m.ahead {
		return false
	}
	return c.exceeds(m, now)
}

// exceeds is unexplained in 128 bits.
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

func (*tokenBucket) allows(m *Meter, w []uint64, now, cost int64) bool {
	c := loadCell(w)
	if m.narrow && c == (cell{}) {
		return true // the caller has checked that cost ≤ capacity
	}
	if m.narrow && int64(c.b) == m.quota {
		return (c.t-now)*m.quota+int64(c.part()) <= m.window*(m.capacity-cost)
	}
	return !wideMul(m.window, m.capacity-cost).less(c.debt(now))
}

func (*tokenBucket) charge(m *Meter, w []uint64, now, cost int64) {
	c := loadCell(w)
	if m.quota == 0 { // nothing pays a debt off
		return
	}
	if m.narrow && (int64(c.b) == m.quota || c == cell{}) && cost <= m.capacity {
		d := m.window * cost
		if c != (cell{}) {
			d += (c.t-now)*m.quota + int64(c.part())
		}
		if d <= m.window*m.capacity {
			cell{t: now + d/m.quota, a: uint32(d % m.quota), b: uint32(m.quota)}.store(w)
			return
		}
	}
	c.owe(m, now, cost).store(w)
}

// owe is charge in 128 bits, for a debt of any size.
func (c cell) owe(m *Meter, now, cost int64) cell {
	d, most := c.debt(now).add(wideMul(m.window, cost)), wideMul(2*m.window, m.capacity)
	if most.less(d) {
		d = most
	}
	return m.debtor(now, d)
}

func (*tokenBucket) wait(m *Meter, w []uint64, now, cost int64) int64 {
	return loadCell(w).waitBucket(m, now, cost)
}

func (c cell) waitBucket(m *Meter, now, cost int64) int64 {
	if c == (cell{}) {
		return 0
	}
	return c.debt(now).sub(wideMul(m.window, m.capacity-cost)).divUp(int64(c.b))
}

func (*tokenBucket) outlook(m *Meter, w []uint64, now int64) (left, reset, more int64) {
	c := loadCell(w)
	switch {
	case c == cell{}:
		return m.capacity, 0, 0
	case !m.narrow || int64(c.b) != m.quota:
		left = max(0, m.capacity-c.debt(now).divUp(m.window))
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

// refund pays back what is still owed of a charge. A debt is paid off in
// the order in which it was made: if the bucket was to be full at at + reset
// after the charge, nothing of the charge is owed from then on.
func (*tokenBucket) refund(m *Meter, w []uint64, now, at, reset, cost int64) {
	c, owed := loadCell(w), at+reset-now
	if owed <= 0 || m.quota == 0 || c == (cell{}) {
		return
	}
	back, most := wideMul(m.window, cost), wideMul(owed, int64(c.b))
	if most.less(back) {
		back = most
	}
	stored := m.With(int64(c.b))
	stored.debtor(now, c.debt(now).sub(back)).store(w)
}

// grant pays off what the hits have added to the debt.
func (*tokenBucket) grant(m *Meter, w []uint64, now, n int64) {
	c := loadCell(w)
	if m.quota == 0 || c == (cell{}) {
		return
	}
	stored := m.With(int64(c.b))
	stored.debtor(now, c.debt(now).sub(wideMul(m.window, n))).store(w)
}

func (*tokenBucket) expiry(_ *Meter, w []uint64) int64 { return loadCell(w).t + 1 }

func (*tokenBucket) worstCase(m *Meter) int64 { return m.capacity + m.quota }

func (*tokenBucket) lifetime(m *Meter) int64 {
	if m.quota == 0 {
		return 0
	}
	return wideMul(m.window, m.capacity).divUp(m.quota) + 1
}
