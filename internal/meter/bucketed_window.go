package meter

import "encoding/binary"

// A bucketed window counts the hits of each precision P, a divisor of the window's length W: with n
// = W/P and k = floor(now/P),
//
//	allowed ⇔ hits of the buckets k−n … k, + cost ≤ quota
//
// These are the n full buckets of a window and the running one, so that no window of length W ever
// holds more than the quota: a window that ends in the running bucket begins in the oldest. With
// one bucket fewer, a window could hold nearly twice the quota. Buckets of a precision are
// described in "Sliding windows" of Josiah Carlson, Introduction to rate limiting with Redis, part
// 2 (https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html).
//
// The state is the newest bucket's k, its place in the ring, the total of all buckets, then the
// ring: the counts of n + 1 buckets.
const (
	bucketsNewest = iota
	bucketsPlace
	bucketsTotal
	bucketsRing
)

type bucketedWindow struct{}

func (*bucketedWindow) words(m *Meter, _ []uint64, _ int64) int {
	return bucketsRing + int(m.Buckets) + 1
}

// totalOf returns the hits of all buckets.
func totalOf(w []uint64) int64 {
	if len(w) == 0 {
		return 0
	}
	return int64(w[bucketsTotal])
}

// bucket returns the hits of the bucket that is so many buckets older than the newest one.
func (m *Meter) bucket(w []uint64, age int64) *uint64 {
	i := int64(w[bucketsPlace]) - age
	if i < 0 {
		i += m.Buckets + 1
	}
	return &w[bucketsRing+i]
}

func (m *Meter) addToBucket(w []uint64, age, n int64) {
	*m.bucket(w, age) += uint64(n)
	w[bucketsTotal] += uint64(n)
}

// append writes the newest bucket's k, then how many buckets follow and their counts, newest first.
func (*bucketedWindow) append(m *Meter, dst []byte, w []uint64) []byte {
	if totalOf(w) == 0 {
		return append(dst, 0, 0)
	}
	oldest := m.Buckets
	for *m.bucket(w, oldest) == 0 {
		oldest--
	}
	dst = binary.AppendVarint(dst, int64(w[bucketsNewest]))
	dst = binary.AppendUvarint(dst, uint64(oldest+1))
	for age := range oldest + 1 {
		dst = binary.AppendUvarint(dst, *m.bucket(w, age))
	}
	return dst
}

func (a *bucketedWindow) read(m *Meter, r *Reader) []uint64 {
	newest, n := r.Time(), int64(r.Uvarint(uint64(m.Buckets)+1))
	if n == 0 || r.Bad {
		return nil
	}
	w := make([]uint64, a.words(m, nil, 0))
	w[bucketsNewest], w[bucketsPlace] = uint64(newest), uint64(m.Buckets)
	for age := range n {
		count := int64(r.Uvarint(MaxCount))
		if r.Bad || totalOf(w)+count > MaxCount {
			r.Bad = true
			return nil
		}
		m.addToBucket(w, age, count)
	}
	return w
}

func (*bucketedWindow) advance(m *Meter, w []uint64, now int64) (at int64, far bool) {
	if len(w) == 0 {
		return now, false
	}
	newest, k := int64(w[bucketsNewest]), floorDiv(now, m.Precision)
	if k < newest && totalOf(w) > 0 {
		if at = newest * m.Precision; at-now < m.Window {
			return at, false // the newest bucket is the running one
		}
		far = true
	}
	// If the newest is further ahead, the buckets keep their distances, and the newest becomes the
	// bucket of now.
	w[bucketsNewest] = uint64(k)
	for steps := min(k-newest, m.Buckets+1); steps > 0; steps-- {
		if w[bucketsPlace]++; w[bucketsPlace] > uint64(m.Buckets) {
			w[bucketsPlace] = 0
		}
		m.addToBucket(w, 0, -int64(*m.bucket(w, 0)))
	}
	return now, far
}

func (*bucketedWindow) left(m *Meter, w []uint64, _ int64) int64 {
	return max(0, m.Quota-totalOf(w))
}

func (*bucketedWindow) charge(m *Meter, w []uint64, now, cost int64) {
	if w[bucketsPlace] == 0 && totalOf(w) == 0 {
		w[bucketsNewest] = uint64(floorDiv(now, m.Precision))
	}
	m.addToBucket(w, 0, min(cost, MaxCount-totalOf(w)))
}

// wait goes through the buckets from the oldest one until enough hits have stopped counting. For
// the whole quota all of them must have: then the newest bucket with hits decides.
func (*bucketedWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	age := int64(0)
	if cost == m.Quota {
		for *m.bucket(w, age) == 0 {
			age++
		}
		return m.bucketEnd(w, age) - now
	}
	age = m.Buckets + 1
	for excess := totalOf(w) + cost - m.Quota; excess > 0; {
		age--
		excess -= int64(*m.bucket(w, age))
	}
	return m.bucketEnd(w, age) - now
}

// bucketEnd returns when the bucket of this age stops counting.
func (m *Meter) bucketEnd(w []uint64, age int64) int64 {
	return (int64(w[bucketsNewest]) - age + m.Buckets + 1) * m.Precision
}

func (*bucketedWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	if len(w) == 0 {
		return
	}
	age := int64(w[bucketsNewest]) - floorDiv(at, m.Precision)
	if age >= 0 && age <= m.Buckets {
		m.addToBucket(w, age, -min(cost, int64(*m.bucket(w, age))))
	}
}

// grant takes hits of the newest buckets.
func (*bucketedWindow) grant(m *Meter, w []uint64, _, n int64) {
	n = min(n, totalOf(w))
	for age := int64(0); n > 0; age++ {
		back := min(n, int64(*m.bucket(w, age)))
		m.addToBucket(w, age, -back)
		n -= back
	}
}

// expiry is the end of the newest bucket, even if an older one has the last hit. Buckets that have
// become empty mean the same as none at any time.
func (*bucketedWindow) expiry(m *Meter, w []uint64) int64 {
	if totalOf(w) == 0 {
		return 0
	}
	return m.bucketEnd(w, 0)
}

func (*bucketedWindow) worstCase(m *Meter) int64 { return m.Quota }

func (*bucketedWindow) lifetime(m *Meter) int64 { return m.Window + m.Precision }
