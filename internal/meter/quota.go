package meter

import (
	"math"
	"math/bits"
)

// Own and Unlimited stand for a quota in For: the limit's, and none.
const (
	Own       int64 = -1
	Unlimited int64 = math.MaxInt64
)

// For returns the meter for a decision with a quota. room holds a new one. If unlimited is true,
// the decision is the meter's own, but the cost is always allowed.
func (m *Meter) For(quota int64, room *Meter) (n *Meter, unlimited bool) {
	switch quota {
	case Own, m.quota:
		return m, false
	case Unlimited:
		return m, true
	}
	*room = *m
	room.setQuota(quota)
	return room, false
}

// With returns the meter of the same limit with another quota. Stored states do not depend on it,
// except that a token bucket's debt is paid off at the quota of the last charge. The burst of a
// token bucket changes in proportion to the limit's own, rounded down, and is at least 1: it does
// not matter which quota m has. The quota is 0 to MaxCount.
func (m *Meter) With(quota int64) Meter {
	w := *m
	w.setQuota(quota)
	return w
}

func (m *Meter) setQuota(quota int64) {
	if quota == m.quota {
		return
	}
	m.quota, m.capacity = quota, quota
	if own := m.own; m.algorithm == TokenBucket && own.capacity != own.quota && own.quota != 0 && quota != 0 {
		burst, _ := MulDiv(own.capacity, quota, own.quota)
		m.capacity = min(max(burst, 1), MaxCount)
	}
	m.narrows()
}

// narrows sets narrow and ahead. It is called after each change of the quota.
func (m *Meter) narrows() {
	hi, lo := bits.Mul64(uint64(m.window), uint64(max(m.capacity, m.quota)))
	m.narrow = hi == 0 && lo <= 1<<61
	m.ahead = 0
	if m.algorithm == TokenBucket && m.narrow && m.quota > 0 {
		m.ahead = m.window*m.capacity/m.quota + m.window
	}
}
