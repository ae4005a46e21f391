package core

// The state of a BucketedWindow: the index of the newest bucket since the Unix
// epoch, then the place of that bucket in the ring and the total of all
// buckets, then the ring of buckets, two in a word. It has the n full buckets
// of a window and the running one, so that no window ever holds more than the
// quota: a window that ends within the running bucket begins within the oldest.
const (
	bucketsNewest = iota
	bucketsPlace
	bucketsRing
)

func (m *meter) bucketsWords() int { return bucketsRing + int(m.buckets+2)/2 }

func bucketsTotal(w []uint64) int64 {
	if len(w) == 0 {
		return 0
	}
	return int64(w[bucketsPlace] >> 32)
}

func (m *meter) bucket(w []uint64, age int64) (word *uint64, shift uint) {
	i := int64(uint32(w[bucketsPlace])) - age
	if i < 0 {
		i += m.buckets + 1
	}
	return &w[bucketsRing+i/2], uint(i%2) * 32
}

func (m *meter) bucketCount(w []uint64, age int64) int64 {
	word, shift := m.bucket(w, age)
	return int64(uint32(*word >> shift))
}

func (m *meter) addToBucket(w []uint64, age, n int64) {
	word, shift := m.bucket(w, age)
	*word += uint64(n) << shift
	w[bucketsPlace] += uint64(n) << 32
}

func (m *meter) advanceBuckets(w []uint64, now int64) {
	if len(w) == 0 {
		return
	}
	newest, k := int64(w[bucketsNewest]), floorDiv(now, m.precision)
	if k < newest && bucketsTotal(w) > 0 && newest*m.precision-now < m.window {
		return // the newest bucket is the running one
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
}

func (m *meter) chargeBuckets(w []uint64, now, cost int64) {
	if w[bucketsPlace] == 0 && bucketsTotal(w) == 0 {
		w[bucketsNewest] = uint64(floorDiv(now, m.precision))
	}
	m.addToBucket(w, 0, cost)
}

func (m *meter) waitBuckets(w []uint64, now, cost int64) int64 {
	excess := bucketsTotal(w) + cost - m.quota
	if excess <= 0 {
		return 0
	}
	age := m.oldestBucket(w)
	for ; age > 0; age-- {
		if excess -= m.bucketCount(w, age); excess <= 0 {
			break
		}
	}
	return m.bucketEnd(w, age) - now
}

// oldestBucket returns the age of the oldest bucket that has hits, 0 if none
// has.
func (m *meter) oldestBucket(w []uint64) int64 {
	place := int64(uint32(w[bucketsPlace]))
	if i := filledBucket(w, place+1, m.buckets); i >= 0 {
		return place + m.buckets + 1 - i
	}
	return place - max(0, filledBucket(w, 0, place))
}

// filledBucket returns the first place of the ring, from one to the other, whose
// bucket has hits, or -1.
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
func (m *meter) bucketEnd(w []uint64, age int64) int64 {
	return (int64(w[bucketsNewest]) - age + m.buckets + 1) * m.precision
}

func (m *meter) refundBuckets(w []uint64, at, cost int64) {
	if len(w) == 0 {
		return
	}
	age := int64(w[bucketsNewest]) - floorDiv(at, m.precision)
	if age >= 0 && age <= m.buckets {
		m.addToBucket(w, age, -min(cost, m.bucketCount(w, age)))
	}
}

func (m *meter) expiryBuckets(w []uint64) int64 {
	if len(w) == 0 {
		return 0
	}
	return m.bucketEnd(w, 0)
}
