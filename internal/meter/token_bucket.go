package meter

import "math"

// The token bucket is the generic cell rate algorithm, GCRA: ITU-T I.371, annex A
// (https://www.itu.int/rec/T-REC-I.371), and ATM Forum, Traffic Management 4.1 (af-tm-0121.000).
// https://brandur.org/rate-limiting explains it for HTTP. It keeps the theoretical arrival time
// TAT, at which the bucket is full again. With E = window/quota for one hit, cost hits pass at the
// time t if
//
//	max(TAT, t) + E·cost − E·burst ≤ t
//
// and then move TAT on by E·cost. E is rarely a whole number of microseconds, so that everything is
// counted in units of 1/quota microseconds: the debt is D = (TAT − t)·quota, a hit adds window to
// it, and a microsecond pays off quota. Nothing is rounded.
//
// The state is a cell: TAT = t + a/b, and b is the quota at the last charge, which pays the debt
// off. D counts hits × window under any quota, so that programs whose quotas differ agree on how
// many hits are owed. The state has no time of its own: a charge by a later clock is a larger debt.
// A charge above the quota may leave a debt above the burst: overBurst, a bit of a, tells it from a
// debt that only a step of the clock explains.

const overBurst = 1 << 31

type tokenBucket struct{ fixedSize }

// part returns a without the bit.
func (c cell) part() uint32 { return c.a &^ overBurst }

func (*tokenBucket) read(_ *Meter, r *Reader) []uint64 {
	c := cell{t: r.Time(), a: uint32(r.Uvarint(math.MaxUint32)), b: uint32(r.Uvarint(MaxCount))}
	r.Bad = r.Bad || c != (cell{}) && c.part() >= c.b
	w := make([]uint64, cellWords)
	c.store(w)
	return w
}

// advance returns now: the state of a token bucket has no time of its own.
func (*tokenBucket) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	switch c := loadCell(w); {
	case c.b == 0 || c.t < now || c.t == now && c.part() == 0: // nothing is owed
		cell{}.store(w)
	case c.unexplained(m, now):
		stored := m.With(int64(c.b))
		stored.debtor(now, wideMul(m.Window, stored.Capacity)).store(w)
		return now, true
	}
	return now, false
}

// unexplained reports whether the charge that made the debt was a window or more ahead of now: the
// debt is at least the most that a charge leaves and what a window pays off, (burst + quota) ×
// window, or (2 × burst + quota) × window if overBurst is set. The burst is that of the quota that
// is stored, or the limit's own if that is larger: the quota may have been raised since. A debt
// that less than a window pays off is always explained.
//
// A quota of 0 counts nothing and forgets nothing.
func (c cell) unexplained(m *Meter, now int64) bool {
	if c.t-now < m.Window || m.Quota == 0 {
		return false
	}
	stored := m.With(int64(c.b))
	most := wideMul(m.Window, max(stored.Capacity, m.ownCapacity))
	if c.a&overBurst != 0 {
		most = most.add(most)
	}
	return !c.debt(now).less(most.add(wideMul(m.Window, stored.Quota)))
}

// debt returns D at now. The cell has been advanced to now.
func (c cell) debt(now int64) wide {
	return wideMul(c.t-now, int64(c.b)).add(wide{0, uint64(c.part())})
}

// debtor returns the cell that owes d at now, paid off at the meter's quota.
func (m *Meter) debtor(now int64, d wide) cell {
	if d == (wide{}) {
		return cell{}
	}
	q, r := d.div(m.Quota)
	c := cell{t: now + q, a: uint32(r), b: uint32(m.Quota)}
	if wideMul(m.Window, m.Capacity).less(d) {
		c.a |= overBurst
	}
	return c
}

func (*tokenBucket) left(m *Meter, w []uint64, now int64) int64 {
	if m.Capacity == 0 { // the debt may be one that only a step of the clock explains
		return 0
	}
	return max(0, m.Capacity-loadCell(w).debt(now).divUp(m.Window))
}

func (*tokenBucket) charge(m *Meter, w []uint64, now, cost int64) {
	if m.Quota == 0 { // nothing pays a debt off
		return
	}
	d := loadCell(w).debt(now).add(wideMul(m.Window, cost))
	if most := wideMul(2*m.Window, m.Capacity); most.less(d) {
		d = most
	}
	m.debtor(now, d).store(w)
}

func (*tokenBucket) wait(m *Meter, w []uint64, now, cost int64) int64 {
	c := loadCell(w)
	return c.debt(now).sub(wideMul(m.Window, m.Capacity-cost)).divUp(int64(c.b))
}

// refund pays back what is still owed of a charge. A debt is paid off in the order in which it was
// made: if the bucket was to be full at at + reset after the charge, nothing of the charge is owed
// from then on.
func (*tokenBucket) refund(m *Meter, w []uint64, now, at, reset, cost int64) {
	back, owed := wideMul(m.Window, cost), at+reset-now
	if owed <= 0 {
		return
	}
	if most := wideMul(owed, int64(loadCell(w).b)); most.less(back) {
		back = most
	}
	m.payBack(w, now, back)
}

// grant pays off what the hits have added to the debt.
func (*tokenBucket) grant(m *Meter, w []uint64, now, n int64) {
	m.payBack(w, now, wideMul(m.Window, n))
}

// payBack takes back from a debt, which is then paid off at the same quota as before.
func (m *Meter) payBack(w []uint64, now int64, back wide) {
	if m.Quota == 0 {
		return
	}
	c := loadCell(w)
	stored := m.With(int64(c.b))
	stored.debtor(now, c.debt(now).sub(back)).store(w)
}

func (*tokenBucket) expiry(_ *Meter, w []uint64) int64 { return loadCell(w).t + 1 }

func (*tokenBucket) worstCase(m *Meter) int64 { return m.Capacity + m.Quota }

func (*tokenBucket) lifetime(m *Meter) int64 {
	if m.Quota == 0 {
		return 0
	}
	return wideMul(m.Window, m.Capacity).divUp(m.Quota) + 1
}
