package meter

import "encoding/binary"

// A bucketed window counts the hits of each precision P, a divisor of the
// window's length W: with n = W/P and k = floor(now/P),
//
//	allowed ⇔ hits of the buckets k−n … k, + cost ≤ quota
//
// These are the n full buckets of a window and the running one, so that no
// window of length W ever holds more than the quota: a window that ends in the
// running bucket begins in the oldest. With one bucket fewer, a window could
// hold nearly twice the quota. Buckets of a precision are described in "Sliding
// windows" of Josiah Carlson, Introduction to rate limiting with Redis, part 2
// (https://www.dr-josiah.com/2014/11/introduction-to-rate-limiting-with_26.html).
//
// The state is the newest bucket's k, then its place in the ring and the total
// of all buckets in one word, then the ring: the counts of n + 1 buckets, two
// in a word.
const (
	bucketsNewest = iota
	bucketsPlace
	bucketsRing
)

type bucketedWindow struct{}

func (*bucketedWindow) words(m *Meter, _ []uint64, _ int64) int {
	return bucketsRing + int(m.buckets+2)/2
}

func bucketsTotal(w []uint64) int64 {
	if len(w) == 0 {
		return 0
	}
	return int64(w[bucketsPlace] >> 32)
}

func (m *Meter) bucket(w []uint64, age int64) (word *uint64, shift uint) {
	i := int64(uint32(w[bucketsPlace])) - age
	if i < 0 {
		i += m.buckets + 1
	}
	return &w[bucketsRing+i/2], uint(i%2) * 32
}

func (m *Meter) bucketCount(w []uint64, age int64) int64 {
	word, shift := m.bucket(w, age)
	return int64(uint32(*word >> shift))
}

func (m *Meter) addToBucket(w []uint64, age, n int64) {
	word, shift := m.bucket(w, age)
	*word += uint64(n) << shift
	w[bucketsPlace] += uint64(n) << 32
}

// append writes the newest bucket's k, then how many buckets follow and
// their counts, newest first.
func (*bucketedWindow) append(m *Meter, dst []byte, w []uint64) []byte {
	if bucketsTotal(w) == 0 {
		return append(dst, 0, 0)
	}
	oldest := m.buckets
	for m.bucketCount(w, oldest) == 0 {
		oldest--
	}
	dst = binary.AppendVarint(dst, int64(w[bucketsNewest]))
	dst = binary.AppendUvarint(dst, uint64(oldest+1))
	for age := range oldest + 1 {
		dst = binary.AppendUvarint(dst, uint64(m.bucketCount(w, age)))
	}
	return dst
}

func (a *bucketedWindow) read(m *Meter, r *Reader) []uint64 {
	newest, n := r.Time(), int64(r.Uvarint(uint64(m.buckets)+1))
	if n == 0 || r.Bad {
		return nil
	}
	w := make([]uint64, a.words(m, nil, 0))
	w[bucketsNewest], w[bucketsPlace] = uint64(newest), uint64(m.buckets)
	for age := range n {
		count := int64(r.Uvarint(MaxCount))
		if r.Bad || bucketsTotal(w)+count > MaxCount {
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
	if k < newest && bucketsTotal(w) > 0 {
		if at = newest * m.Precision; at-now < m.Window {
			return at, false // the newest bucket is the running one
		}
		far = true
	}
	// If the newest is further ahead, the buckets keep their distances, and the
	// newest becomes the bucket of now.
	w[bucketsNewest] = uint64(k)
	for steps := min(k-newest, m.buckets+1); steps > 0; steps-- {
		place := uint64(uint32(w[bucketsPlace])) + 1
		if place > uint64(m.buckets) {
			place = 0
		}
		w[bucketsPlace] = w[bucketsPlace]>>32<<32 | place
		m.addToBucket(w, 0, -m.bucketCount(w, 0))
	}
	return now, far
}

func (*bucketedWindow) left(m *Meter, w []uint64, _ int64) int64 {
	return max(0, m.Quota-bucketsTotal(w))
}

func (*bucketedWindow) charge(m *Meter, w []uint64, now, cost int64) {
	if w[bucketsPlace] == 0 && bucketsTotal(w) == 0 {
		w[bucketsNewest] = uint64(floorDiv(now, m.Precision))
	}
	m.addToBucket(w, 0, min(cost, MaxCount-bucketsTotal(w)))
}

// wait goes through the buckets from the oldest one until enough hits have stopped counting. For
// the whole quota all of them must have: then the newest bucket with hits decides.
func (*bucketedWindow) wait(m *Meter, w []uint64, now, cost int64) int64 {
	age := int64(0)
	if cost == m.Quota {
		for m.bucketCount(w, age) == 0 {
			age++
		}
		return m.bucketEnd(w, age) - now
	}
	age = m.oldestBucket(w)
	for excess := bucketsTotal(w) + cost - m.Quota - m.bucketCount(w, age); excess > 0; {
		age--
		excess -= m.bucketCount(w, age)
	}
	return m.bucketEnd(w, age) - now
}

// oldestBucket returns the age of the oldest bucket that has hits, 0 if none
// has.
func (m *Meter) oldestBucket(w []uint64) int64 {
	place := int64(uint32(w[bucketsPlace]))
	if i := filledBucket(w, place+1, m.buckets); i >= 0 {
		return place + m.buckets + 1 - i
	}
	return place - max(0, filledBucket(w, 0, place))
}

// filledBucket returns the first place of the ring between two, both included,
// whose bucket has hits, or -1.
func filledBucket(w []uint64, from, to int64) int64 {
	ring := w[bucketsRing:]
	for i := from; i <= to; i = i&^1 + 2 { // the rest of a word has none
		switch rest := ring[i/2] >> (uint(i%2) * 32); {
		case uint32(rest) != 0:
			return i
		case rest != 0 && i < to:
			return i + 1
		}
	}
	return -1
}

// bucketEnd returns when the bucket of this age stops counting.
func (m *Meter) bucketEnd(w []uint64, age int64) int64 {
	return (int64(w[bucketsNewest]) - age + m.buckets + 1) * m.Precision
}

func (*bucketedWindow) refund(m *Meter, w []uint64, _, at, _, cost int64) {
	if len(w) == 0 {
		return
	}
	age := int64(w[bucketsNewest]) - floorDiv(at, m.Precision)
	if age >= 0 && age <= m.buckets {
		m.addToBucket(w, age, -min(cost, m.bucketCount(w, age)))
	}
}

// grant takes hits of the newest buckets.
func (*bucketedWindow) grant(m *Meter, w []uint64, _, n int64) {
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

// expiry is the end of the newest bucket, even if an older one has the last hit. Buckets that have
// become empty mean the same as none at any time.
func (*bucketedWindow) expiry(m *Meter, w []uint64) int64 {
	if bucketsTotal(w) == 0 {
		return 0
	}
	return m.bucketEnd(w, 0)
}

func (*bucketedWindow) worstCase(m *Meter) int64 { return m.Quota }

func (*bucketedWindow) lifetime(m *Meter) int64 { return m.Window + m.Precision }
