package core

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// kept returns the foreign records that a write keeps: all but those that have
// expired, and of too many those that expire last.
func (v *stored) kept(now int64) []foreignState {
	var kept []foreignState
	size := 0
	for _, f := range v.foreign {
		if f.expiry+foreignSlack.Microseconds() > now {
			kept = append(kept, f)
			size += len(f.record)
		}
	}
	if len(kept) <= maxForeign && size <= maxForeignBytes {
		return kept
	}
	slices.SortStableFunc(kept, func(a, b foreignState) int { return cmp.Compare(b.expiry, a.expiry) })
	kept = kept[:min(len(kept), maxForeign)]
	size = 0
	return slices.DeleteFunc(kept, func(f foreignState) bool {
		size += len(f.record)
		return size > maxForeignBytes
	})
}

// appendState writes the state of one limit.
func appendState(dst []byte, m *meter, w []uint64) []byte {
	switch m.algorithm {
	case BucketedWindow:
		return m.encodeBuckets(dst, w)
	case SlidingLog:
		return encodeLog(dst, w)
	case lockoutWindow:
		c := loadLockout(w)
		dst = binary.AppendVarint(dst, c.start)
		dst = binary.AppendUvarint(dst, uint64(c.count))
		dst = binary.AppendUvarint(dst, uint64(c.strikes))
		return binary.AppendVarint(dst, c.until)
	default:
		c := loadCell(w)
		dst = binary.AppendVarint(dst, c.t)
		dst = binary.AppendUvarint(dst, uint64(c.a))
		return binary.AppendUvarint(dst, uint64(c.b))
	}
}

// state reads the state of one limit.
func (r *recordReader) state(m *meter) []uint64 {
	switch m.algorithm {
	case lockoutWindow:
		return r.lockout()
	case BucketedWindow:
		return r.buckets(m)
	case SlidingLog:
		return r.log()
	default:
		return r.cell(m)
	}
}

// recordReader reads integers until one is malformed; then it is bad.
type recordReader struct {
	rest []byte
	bad  bool
}

func (r *recordReader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *recordReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// time reads a time, which is within 290 years of 1970.
func (r *recordReader) time() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 || v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) cell(m *meter) []uint64 {
	c := cell{t: r.time(), a: uint32(r.uvarint(math.MaxUint32)), b: uint32(r.uvarint(math.MaxUint32))}
	if m.algorithm == TokenBucket && c != (cell{}) && (c.b == 0 || c.a >= c.b || c.b > MaxQuota) ||
		m.algorithm != TokenBucket && (c.a > MaxQuota || c.b > MaxQuota) {
		r.bad = true
		return nil
	}
	w := make([]uint64, cellWords)
	c.store(w)
	return w
}

func (r *recordReader) lockout() []uint64 {
	c := lockoutCell{
		start:   r.time(),
		count:   uint32(r.uvarint(MaxQuota)),
		strikes: uint32(r.uvarint(maxStrikes)),
		until:   r.time(),
	}
	w := make([]uint64, lockoutWords)
	c.store(w)
	return w
}

// encodeBuckets writes the newest bucket's index, then how many buckets follow
// and their counts, the newest first.
func (m *meter) encodeBuckets(dst []byte, w []uint64) []byte {
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

func (r *recordReader) buckets(m *meter) []uint64 {
	newest, n := r.time(), int64(r.uvarint(uint64(m.buckets)+1))
	if n == 0 || r.bad {
		return nil
	}
	w := make([]uint64, m.bucketsWords())
	w[bucketsNewest], w[bucketsPlace] = uint64(newest), uint64(m.buckets)
	for age := range n {
		count := int64(r.uvarint(MaxQuota))
		if r.bad || bucketsTotal(w)+count > MaxQuota {
			r.bad = true
			return nil
		}
		m.addToBucket(w, age, count)
	}
	return w
}

// encodeLog writes the number of hits, the oldest one's time, and how much
// later each of the others is than the one before.
func encodeLog(dst []byte, w []uint64) []byte {
	n := logLen(w)
	dst = binary.AppendUvarint(dst, uint64(n))
	last := int64(0)
	for i := range n {
		at := int64(*logHit(w, i))
		if i == 0 {
			dst = binary.AppendVarint(dst, at)
		} else {
			dst = binary.AppendUvarint(dst, uint64(at-last))
		}
		last = at
	}
	return dst
}

func (r *recordReader) log() []uint64 {
	n := r.uvarint(MaxLogQuota)
	if n == 0 || r.bad || int(n) > len(r.rest) { // a hit takes a byte at least
		r.bad = r.bad || n != 0
		return nil
	}
	w := make([]uint64, logHeader+n)
	at := r.time()
	for i := range n {
		if i > 0 {
			at += int64(r.uvarint(math.MaxInt64 / 1000))
		}
		if r.bad || at > math.MaxInt64/1000 {
			r.bad = true
			return nil
		}
		w[logHeader+i] = uint64(at)
	}
	setLog(w, 0, int64(n))
	return w
}
