package core

import (
	"encoding/binary"
	"math"
)

// A stored value is the state of all limits of one key, for stores that keep
// bytes: a version, then for each limit its identity and its state, all as
// variable-length integers (encoding/binary). What cannot be read is treated as
// absent, as a whole: a value that somebody else wrote, or a part of one, is
// not to be trusted with anybody's quota. So is a limit that the rule no longer
// has.
const stateVersion = 1

// encodeStates returns the stored value of the states.
func encodeStates(ids []identity, meters []meter, states [][]uint64) []byte {
	dst := []byte{stateVersion}
	for i, id := range ids {
		dst = appendIdentity(dst, id)
		w := states[i]
		switch id.algorithm {
		case BucketedWindow:
			dst = meters[i].encodeBuckets(dst, w)
		case SlidingLog:
			dst = encodeLog(dst, w)
		case lockoutWindow:
			c := loadLockout(w)
			dst = binary.AppendVarint(dst, c.start)
			dst = binary.AppendUvarint(dst, uint64(c.count))
			dst = binary.AppendUvarint(dst, uint64(c.strikes))
			dst = binary.AppendVarint(dst, c.until)
		default:
			c := loadCell(w)
			dst = binary.AppendVarint(dst, c.t)
			dst = binary.AppendUvarint(dst, uint64(c.a))
			dst = binary.AppendUvarint(dst, uint64(c.b))
		}
	}
	return dst
}

func appendIdentity(dst []byte, id identity) []byte {
	kind := uint64(id.algorithm) << 1
	if id.aligned {
		kind |= 1
	}
	dst = binary.AppendUvarint(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(id.window.Microseconds()))
	return binary.AppendUvarint(dst, uint64(id.precision.Microseconds()))
}

// decodeStates returns the states of the limits that value has, those of a key
// never seen for the others.
func decodeStates(value []byte, ids []identity, meters []meter) [][]uint64 {
	states := make([][]uint64, len(ids))
	r := stateReader{rest: value}
	if r.byte() == stateVersion {
		for len(r.rest) > 0 && !r.bad {
			r.state(ids, states)
		}
	} else {
		r.bad = true
	}
	for i := range states {
		if r.bad {
			states[i] = nil
		}
		if states[i] == nil && !meters[i].grows() {
			states[i] = make([]uint64, meters[i].fixedWords())
		}
	}
	return states
}

// stateReader reads integers until one is malformed; then it is bad.
type stateReader struct {
	rest []byte
	bad  bool
}

func (r *stateReader) byte() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *stateReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > most {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// time reads a time, which is within 290 years of 1970.
func (r *stateReader) time() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 || v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// state reads one limit's state and keeps it where a limit is still its own.
func (r *stateReader) state(ids []identity, states [][]uint64) {
	kind := r.uvarint(uint64(lockoutWindow)*2 + 1)
	stored := Limit{Algorithm: Algorithm(kind >> 1), Aligned: kind&1 == 1}
	if stored.Algorithm == lockoutWindow {
		stored.Algorithm, stored.Lockout.First = FixedWindow, MinWindow
	}
	window := r.uvarint(uint64(MaxWindow.Microseconds()))
	precision := r.uvarint(uint64(MaxWindow.Microseconds()))
	if r.bad {
		return
	}
	stored.Window, stored.Precision = micros(int64(window)), micros(int64(precision))
	stored.Quota = 1
	if stored.Validate() != nil {
		r.bad = true
		return
	}
	m := newMeter(stored)
	var w []uint64
	switch m.algorithm {
	case lockoutWindow:
		w = r.lockout()
	case BucketedWindow:
		w = r.buckets(&m)
	case SlidingLog:
		w = r.log()
	default:
		w = r.cell(&m)
	}
	if r.bad {
		return
	}
	for i, id := range ids {
		if id == stored.identity() {
			states[i] = w
		}
	}
}

func (r *stateReader) cell(m *meter) []uint64 {
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

func (r *stateReader) lockout() []uint64 {
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

func (r *stateReader) buckets(m *meter) []uint64 {
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

func (r *stateReader) log() []uint64 {
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
