package meter

import (
	"encoding/binary"
	"math"
)

// cell is the state of the algorithms that keep one time and two small numbers for a key. All zero
// is the state of a key never seen.
//
//	FixedWindow    t: start of the window   a: its hits
//	SlidingWindow  t: start of the window   a: its hits   b: the previous window's hits
//	Calendar       t: start of the window   a: its hits   b: its length in seconds
//	TokenBucket    t + a/b: when the bucket is full again   b: the quota that pays the debt off
type cell struct {
	t    int64
	a, b uint32
}

// cellWords is the number of words of a cell.
const cellWords = 2

func loadCell(w []uint64) cell {
	_ = w[1]
	return cell{int64(w[0]), uint32(w[1]), uint32(w[1] >> 32)}
}

func (c cell) store(w []uint64) {
	_ = w[1]
	w[0], w[1] = uint64(c.t), uint64(c.a)|uint64(c.b)<<32
}

// anchor returns the start of the window that a first hit at now opens.
func (m *Meter) anchor(now int64) int64 {
	if m.Aligned {
		return floorTo(now, m.Window)
	}
	return now
}

// addCount returns a count of hits after n more, which stops at MaxCount.
func addCount(count uint32, n int64) uint32 {
	return uint32(min(int64(count)+n, max(MaxCount, int64(count))))
}

// fixedSize is shared by the algorithms whose states do not grow.
type fixedSize struct{}

func (*fixedSize) words(m *Meter, _ []uint64, _ int64) int { return m.FixedWords() }

// append writes a cell, a signed time and two counts, and, of a lockout, another time.
func (*fixedSize) append(_ *Meter, dst []byte, w []uint64) []byte {
	c := loadCell(w)
	dst = binary.AppendVarint(dst, c.t)
	dst = binary.AppendUvarint(dst, uint64(c.a))
	dst = binary.AppendUvarint(dst, uint64(c.b))
	for _, t := range w[cellWords:] {
		dst = binary.AppendVarint(dst, int64(t))
	}
	return dst
}

func (*fixedSize) read(m *Meter, r *Reader) []uint64 {
	w := make([]uint64, m.FixedWords())
	cell{t: r.Time(), a: uint32(r.Uvarint(MaxCount)), b: uint32(r.Uvarint(MaxCount))}.store(w)
	for i := range w[cellWords:] {
		w[cellWords+i] = uint64(r.Time())
	}
	return w
}

// AppendState appends the bytes of a state. ReadState reads them.
func (m *Meter) AppendState(dst []byte, w []uint64) []byte { return m.arithmetic.append(m, dst, w) }

// ReadState reads a state. If its bytes are not those of a state of this algorithm, r is bad
// afterwards, and the result means nothing. The result may be nil if the algorithm's state grows.
func (m *Meter) ReadState(r *Reader) []uint64 { return m.arithmetic.read(m, r) }

// Reader reads numbers of variable length (encoding/binary) until one is malformed. Then it is bad.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Uvarint reads a number that is at most most.
func (r *Reader) Uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 || v > most {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// maxTime is the latest time that a state may have, and -maxTime the earliest: about 290 years from
// 1970. No sum of a time and a window overflows then.
const maxTime = math.MaxInt64 / 1000

// Time reads a time.
func (r *Reader) Time() int64 {
	v := r.Uvarint(2 * maxTime) // its last bit is the sign, as in binary.Varint
	return int64(v>>1) ^ -int64(v&1)
}
