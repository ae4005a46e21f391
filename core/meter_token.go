package core

// The token bucket is the generic cell rate algorithm (ITU-T I.371, annex A):
// it keeps the theoretical arrival time TAT, at which the bucket is full
// again. With E = window/quota for one hit, cost hits pass at time t where
//
//	max(TAT, t) + E·cost − E·burst ≤ t
//
// and then move TAT on by E·cost. E is a fraction of a microsecond as a rule,
// so that all is counted in units of 1/quota microseconds: the debt
// D = (TAT − t)·quota, of which a hit costs window, and which a microsecond
// pays off by quota. Nothing is rounded.
//
// The quota is the stored one, b: a debt is paid off at the quota of the limit
// that charged last. D counts hits × window under any quota, so that programs
// whose quotas differ agree on how many hits are owed.

// debt returns D at now; the cell has been rolled to now.
func (c cell) debt(now int64) wide {
	if c == (cell{}) {
		return wide{}
	}
	return wideMul(c.t-now, int64(c.b)).add(wide{0, uint64(c.a)})
}

// debtor returns the cell that owes d at now, paid off at this quota.
func debtor(quota, now int64, d wide) cell {
	if d.zero() {
		return cell{}
	}
	q, r := d.div(quota)
	return cell{t: now + q, a: uint32(r), b: uint32(quota)}
}

// far reports whether the charge that made the debt was a window or more ahead
// of now: the debt is the whole burst, and what a window pays off, or more.
func (c cell) far(m *meter, now int64) bool {
	if m.narrow && int64(c.b) == m.quota && c.t-now < m.ahead {
		return false
	}
	return c.exceeds(m, now)
}

// exceeds computes far in 128 bits.
func (c cell) exceeds(m *meter, now int64) bool {
	return !c.debt(now).less(wideMul(m.window, m.capacity).add(wideMul(m.window, int64(c.b))))
}

func (c cell) rollBucket(m *meter, now int64) cell {
	if c == (cell{}) || c.t < now || c.t == now && c.a == 0 || c.b == 0 {
		return cell{}
	}
	// A quota of 0 counts nothing, and forgets nothing.
	if m.quota == 0 || !c.far(m, now) {
		return c
	}
	return debtor(int64(c.b), now, wideMul(m.window, m.capacity))
}

func (c cell) admitsBucket(m *meter, now, cost int64) bool {
	if m.narrow && c == (cell{}) {
		return true // cost ≤ capacity has been checked
	}
	if m.narrow && int64(c.b) == m.quota {
		return (c.t-now)*m.quota+int64(c.a) <= m.window*(m.capacity-cost)
	}
	return !wideMul(m.window, m.capacity-cost).less(c.debt(now))
}

func (c cell) chargeBucket(m *meter, now, cost int64) cell {
	if m.narrow && (int64(c.b) == m.quota || c == cell{}) {
		d := m.window * cost
		if c != (cell{}) {
			d += (c.t-now)*m.quota + int64(c.a)
		}
		return cell{t: now + d/m.quota, a: uint32(d % m.quota), b: uint32(m.quota)}
	}
	return debtor(m.quota, now, c.debt(now).add(wideMul(m.window, cost)))
}

func (c cell) remainingBucket(m *meter, now int64) int64 {
	if c == (cell{}) {
		return m.capacity
	}
	return max(0, m.capacity-c.debt(now).divUp(m.window))
}

func (c cell) waitBucket(m *meter, now, cost int64) int64 {
	if c == (cell{}) {
		return 0
	}
	return c.debt(now).sub(wideMul(m.window, m.capacity-cost)).divUp(int64(c.b))
}

// refundBucket pays back what is still owed of a charge: a debt is paid off in
// the order in which it was made, so that of a charge after which the bucket
// was to be full at at+reset, nothing is owed any more from then on.
func (c cell) refundBucket(m *meter, now, at, reset, cost int64) cell {
	owed := at + reset - now
	if owed <= 0 || m.quota == 0 || c == (cell{}) {
		return c
	}
	back, most := wideMul(m.window, cost), wideMul(owed, int64(c.b))
	if most.less(back) {
		back = most
	}
	return debtor(int64(c.b), now, c.debt(now).sub(back))
}
